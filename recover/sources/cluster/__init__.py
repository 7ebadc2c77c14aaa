"""A warehouse behind a Spark cluster as a log."""
