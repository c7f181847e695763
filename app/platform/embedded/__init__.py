"""The PostgreSQL that KeMem brings along, out of a wheel."""
