"""Room 1: who is calling."""
