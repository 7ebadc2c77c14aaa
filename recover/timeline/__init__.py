"""Rows of a table through time."""
