"""The schema of the service, step by step; `app/database/migrate.py` runs it."""
