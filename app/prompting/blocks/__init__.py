"""Editable texts of limited length that are always in the context."""
