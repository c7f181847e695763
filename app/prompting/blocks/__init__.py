"""Room: editable texts of limited length that always stand in the context."""
