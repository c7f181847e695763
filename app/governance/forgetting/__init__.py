"""Forgetting by policy: what has expired or exceeds a limit is archived, with its reason."""
