"""Captures as they run: plans, steps, recordings, the with-block and the launcher."""
