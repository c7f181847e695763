"""Workshop: models and their providers, and no room."""
