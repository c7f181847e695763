"""Statements, their attributes and a profile, found by rules without a model."""
