"""The raw tables and their files: the layer below landing and following."""
