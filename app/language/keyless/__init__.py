"""Workshop of keyless understanding: statements and their attributes, by rules."""
