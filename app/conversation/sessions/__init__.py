"""Room 5: conversations."""
