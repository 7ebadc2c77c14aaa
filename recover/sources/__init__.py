"""The log that a command asks: a warehouse, or binlog files."""
