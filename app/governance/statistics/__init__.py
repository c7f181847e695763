"""Statistics: whether what is remembered is found, and used."""
