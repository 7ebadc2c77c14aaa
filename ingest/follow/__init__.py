"""A live server, followed as a replica does: received into a spool, and landed from it."""
