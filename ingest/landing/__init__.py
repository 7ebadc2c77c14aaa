"""Spark tables of schema `binlog_raw`: what they are, and how segments of binlog files get into them."""
