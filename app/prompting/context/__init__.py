"""Room: what goes to the model before a call."""
