"""Room 2: applications that use memory."""
