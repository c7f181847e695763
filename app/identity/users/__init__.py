"""Users: the people an agent talks to."""
