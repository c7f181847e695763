"""Scores the rows of a search by their words, vectors and context; runs no statement."""
