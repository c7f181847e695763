"""Calls and tokens of models, by day, and daily quotas."""
