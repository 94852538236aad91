"""Pairing and moving weights between two nets; layers as they ran belong to `align`."""
