"""Memory as functions that a model may call."""
