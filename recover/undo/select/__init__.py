"""The changes that an undo takes back, and what the log lacks of them."""
