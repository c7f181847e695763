"""Room of operations: jobs as an operator sees them, and upkeep on a schedule."""
