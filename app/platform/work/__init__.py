"""One transaction per request: when writing is allowed, and one effect per idempotency key."""
