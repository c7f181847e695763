"""Images of a session that it can be restored from, and approvals."""
