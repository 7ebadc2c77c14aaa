"""Pages to look at a log: read-only, on this machine, one question at a time."""
