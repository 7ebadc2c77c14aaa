"""Reads from the text of statements how they change schemas and whose rows they change; builds the shapes of tables."""
