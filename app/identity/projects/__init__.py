"""Room 4: groups of users who share memories."""
