"""Statements that are written, read back and compared with a server."""
