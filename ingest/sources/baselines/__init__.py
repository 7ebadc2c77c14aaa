"""All rows of tables of a live server at one position of its log."""
