"""Answers with what they lack, as objects: the commands print them, `binloom.api` returns them."""
