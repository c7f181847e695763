"""Tenants and API keys: who is calling."""
