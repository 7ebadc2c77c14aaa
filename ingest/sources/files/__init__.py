"""Binlog files wherever they are: in folders, compressed, in archives, pipes and object stores."""
