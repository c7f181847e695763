"""The Model Context Protocol: memory as tools and resources of a desktop."""
