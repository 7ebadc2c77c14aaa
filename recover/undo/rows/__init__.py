"""Rows as an undo has them: their changes folded, the operations on them, and their values in SQL."""
