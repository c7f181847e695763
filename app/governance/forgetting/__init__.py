"""Letting go by policy: what is over, dirty or too much is archived, and told why."""
