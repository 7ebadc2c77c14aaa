"""Sidecars of binlog files: what is in which range of a file, so that a question reads only the ranges it needs."""
