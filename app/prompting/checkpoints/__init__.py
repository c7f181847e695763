"""Room: full images of a session that it can be put back to, and approvals."""
