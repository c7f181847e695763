"""Room 6: what was said, in order."""
