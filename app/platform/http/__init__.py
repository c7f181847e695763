"""HTTP: errors, health, documentation, middleware and uploads."""
