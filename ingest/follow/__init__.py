"""Follow a live server as a replica does: receive its log into a spool, and land it from there."""
