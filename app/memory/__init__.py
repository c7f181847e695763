"""What is remembered: statements, how they are extracted, the graph and the profiles."""
