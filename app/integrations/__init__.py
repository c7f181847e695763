"""Other people's dialects, on top of the services."""
