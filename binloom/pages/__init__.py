"""Pages for people: what the lineage site, the report of an incident and the local page share."""
