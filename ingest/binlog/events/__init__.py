"""Events: the fields of each type, one module for the types that belong together."""
