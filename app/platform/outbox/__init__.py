"""Events, written in the transaction of the change that they report."""
