"""Dumps of mysqldump, mydumper and MySQL Shell, and the rows of a live server, as one kind of source."""
