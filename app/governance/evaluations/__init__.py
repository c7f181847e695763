"""Evaluations: results of `kemem eval` and of others, kept to be compared."""
