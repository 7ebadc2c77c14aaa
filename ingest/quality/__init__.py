"""The Great Expectations gate, which checks the landed data."""
