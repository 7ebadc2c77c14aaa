"""Facts about old files of the log that must be known before their rows are dropped."""
