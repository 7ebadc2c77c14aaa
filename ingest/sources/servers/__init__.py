"""Live servers: their addresses and connections, what they answer, and the log that they stream."""
