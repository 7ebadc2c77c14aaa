"""Digests and tags of statements: which statement it was, and who sent it."""
