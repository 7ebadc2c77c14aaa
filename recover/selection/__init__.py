"""From the filters of a command to a condition on `row_changes`."""
