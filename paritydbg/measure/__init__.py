"""Two arrays to numbers, and what rounding alone may do to them; nothing is printed, read or written."""
