"""The activity of a log by time and table, for `top`."""
