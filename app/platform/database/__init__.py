"""Workshop: PostgreSQL, and no room."""
