"""Reads the effects of DDL statements from their text, and builds the shapes of tables from them."""
