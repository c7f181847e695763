"""Agents: the applications that use memory, their settings and their embedders."""
