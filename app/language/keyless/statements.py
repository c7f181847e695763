"""What the grammars of both languages answer: a statement about the user, or about their people."""

from dataclasses import dataclass
from typing import Final

EXPLICIT: Final = 0.95
"""Confidence of what somebody says outright about themselves."""
ASKED: Final = 1.0
"""Of what somebody asks to be remembered: a wish is as good as a save by hand."""
CORRECTED: Final = 0.98
CONFIRMED: Final = 0.9
"""Of what the assistant said and the user affirmed."""
IMPLIED: Final = 0.8
"""Of what a turn of phrase implies: "as a nurse, I …", "no meat for me"."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence in the third person.

    Args:
        past: whether a month or weekday without a year lies behind.
        project: it is about what a team makes, not about a person.

    """

    content: str
    memory_type: str
    confidence: float = EXPLICIT
    retracts: bool = False
    past: bool = True
    project: bool = False
