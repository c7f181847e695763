"""Jobs as an operator sees them, and scheduled maintenance."""
