"""The work of each command, in a module with its name. The others hold what several commands share.

A module imports what it needs of `ingest` inside its functions: a command must not wait for Spark that it does not use.
"""
