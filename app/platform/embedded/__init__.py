"""Workshop: the PostgreSQL that KeMem brings along, out of a wheel; knows no room."""
