"""Schema snapshots: from files of information_schema, from DDL."""
