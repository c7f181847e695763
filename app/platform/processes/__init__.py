"""The other processes of a service."""
