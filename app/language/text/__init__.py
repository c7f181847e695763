"""Workshop: what a text says by itself; no model, no database, no room."""
