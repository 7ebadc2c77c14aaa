"""Binlog files as a log: decoded when a question is asked."""
