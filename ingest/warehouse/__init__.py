"""The tables that are kept, and where: the floor that landing and following are built on."""
