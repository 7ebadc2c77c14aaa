"""A plan, or the rows of a state, as a script."""
