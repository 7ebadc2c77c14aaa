"""The tables whose rows a statement changes."""
