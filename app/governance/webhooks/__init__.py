"""Webhooks: whom to notify of changes, deliveries and their log."""
