"""The tables of an undo: their definitions, their keys, and how foreign keys order them."""
