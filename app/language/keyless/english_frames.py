"""What a frame is: a shape of what follows "I", and the type of statement that it makes."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.language.keyless import english_words as words
from app.language.keyless.patterns import compiled
from app.language.keyless.statements import EXPLICIT

ADVERBIAL: Final = rf"(?:(?:{words.ADVERBS}) )*"
DENIED_AGAIN: Final = compiled(
    r"\b(?:any ?more|any longer|no longer|have stopped|stopped|quit|gave up)\b"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """A shape of predicate, without the adverbs that it may begin with.

    Args:
        memory_type: of what it says; None where it says nothing that lasts.
        lead: must be found in the predicate or what stands before the subject.
        project: with "we" it is about a team's work.
        team: said with "I" it says nothing that lasts.
        may_retract: denied "any more", it takes something back.
        split: cuts the predicate, in the third person, where it gives two values.

    """

    pattern: re.Pattern[str]
    memory_type: str | None
    confidence: float = EXPLICIT
    lead: re.Pattern[str] | None = None
    past: bool = True
    project: bool = False
    team: bool = False
    may_retract: bool = False
    split: Callable[[str], list[str]] | None = None

    def fits(self, predicate: str, starts: Sequence[int]) -> bool:
        """Tell whether a predicate has this shape from one of the places on."""
        return any(self.pattern.match(predicate, start) for start in starts)


_ADVERB: Final = compiled(rf"(?:{words.ADVERBS}) ")


def starts_of(predicate: str) -> list[int]:
    """Where a predicate may begin: behind its adverbs, or behind fewer of them."""
    starts = [0]
    while match := _ADVERB.match(predicate, starts[-1]):
        starts.append(match.end())
    return starts[::-1]


def frame(kind: str | None, pattern: str, **more: Any) -> Frame:
    """Make a frame of a pattern that may span lines; `more` are further fields of it."""
    return Frame(compiled(pattern), kind, **more)


NAME: Final = r"[A-ZÀ-Þ][\w'’-]+"
