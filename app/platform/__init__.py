"""What knows nothing of memory: HTTP, PostgreSQL, jobs, the outbox and plugins."""
