"""Texts in a log: character sets, collations, and arrays of texts."""
