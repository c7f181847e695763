"""Projects: groups of users who share memories, their members and roles."""
