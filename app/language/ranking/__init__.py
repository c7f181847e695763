"""Workshop: scores the rows of a search by their words, vectors and context; no room, no SQL."""
