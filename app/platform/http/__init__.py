"""Workshop: HTTP, and no room."""
