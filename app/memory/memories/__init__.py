"""Room 7: what is remembered, why, and how it is found."""
