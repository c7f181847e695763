"""Room of webhooks: whom to tell of changes, and the log of having told."""
