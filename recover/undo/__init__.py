"""SQL that takes back, or does again, the row changes that were selected: nothing is printed that was not proved."""
