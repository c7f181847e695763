"""The schema of the service, step by step; `app/platform/database/migrate.py` runs it."""
