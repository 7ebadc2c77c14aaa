"""What each command does, one module for each that needs more than a few lines.

Modules here may import anything below them (landing, quality, sources, binlog), but only inside the
functions that need it: a command must not wait for Spark when it does not use it.
"""
