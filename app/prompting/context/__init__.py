"""What goes to the model before a call."""
