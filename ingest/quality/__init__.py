"""The Great Expectations gate on what landed."""
