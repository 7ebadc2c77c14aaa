"""Typed models of the tables of a source: generated once, and then owned by the people who use them."""
