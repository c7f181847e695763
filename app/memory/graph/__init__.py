"""The knowledge graph: who and what is spoken of, and how they hang together, through time."""
