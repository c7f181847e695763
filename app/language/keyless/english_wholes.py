"""What a whole clause is: a shape, and the statements that are made of it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from app.language.keyless.english_forms import sentence
from app.language.keyless.patterns import compiled
from app.language.keyless.statements import EXPLICIT, Statement


@dataclass(frozen=True, slots=True)
class WholeFrame:
    """A shape of a whole clause, with what it yields."""

    pattern: re.Pattern[str]
    read: Callable[[re.Match[str]], Iterator[Statement]]


def one(
    text: str, kind: str, confidence: float = EXPLICIT, *, past: bool = True, project: bool = False
) -> Iterator[Statement]:
    yield Statement(sentence(text), kind, confidence, past=past, project=project)


def whole(pattern: str, read: Callable[[re.Match[str]], Iterator[Statement]]) -> WholeFrame:
    return WholeFrame(compiled(pattern), read)


def first_of(frames: Sequence[WholeFrame], clause: str) -> list[Statement] | None:
    """What the first shape that fits says; None when none fits, empty when it says nothing."""
    for frame in frames:
        match = frame.pattern.match(clause)
        if match:
            return [each for each in frame.read(match) if each.content]
    return None
