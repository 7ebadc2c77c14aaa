"""Rows: from the columns of a table map to values, also those that the kernel leaves to Python."""
