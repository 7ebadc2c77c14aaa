"""Tables at a moment, from a dump and the log after it."""
