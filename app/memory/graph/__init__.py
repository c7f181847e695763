"""The knowledge graph: people and things in memories, and their relations through time."""
