"""From the marts to answers, without Java."""
