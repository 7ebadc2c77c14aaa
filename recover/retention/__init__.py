"""What must be known about old files of the log before their rows are dropped."""
