"""Room 3: whom an agent talks to."""
