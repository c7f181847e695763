"""A tenant, an agent or a user as lines of JSON, out and in again."""
