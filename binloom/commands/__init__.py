"""The implementation of each command, in a module of the same name. Other modules are shared by several commands.

Modules import from `ingest` inside functions, so that a command that does not use Spark does not load it.
"""
