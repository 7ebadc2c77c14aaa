"""Questions about row changes: in SQL, by sums, by statistics."""
