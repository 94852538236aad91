"""Reasons for findings, one file per group; each is a list of functions that look and may name one."""
