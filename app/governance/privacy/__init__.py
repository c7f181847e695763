"""Erasure of a person, a project, a session or an agent with all they hold."""
