"""Room: memory as functions that a model may call."""
