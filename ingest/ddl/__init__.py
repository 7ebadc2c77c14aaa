"""What DDL statements do to a schema: read from their text, and put together to the shapes of tables."""
