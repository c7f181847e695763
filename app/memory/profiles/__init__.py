"""Profiles of users and projects: their own words, and what is derived from memories."""
