"""How long a test waits for what is bound to happen."""

from typing import Final

PATIENCE: Final = 300.0
"""Seconds. A condition is looked at every few hundredths of one, so a long limit costs nothing
where it comes true, and a machine ten times slower still meets it."""
