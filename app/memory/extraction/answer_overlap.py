"""Which memories an answer seems to draw on, by the words they share. Pure, and an estimate.

An answer that is worded otherwise is missed, and one that says the same by chance is taken. What
the user said as well counts for nothing, since the answer may have it from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.memory.extraction.shared_words import words_of

LEAST_WORDS: Final = 2
"""Fewest words, or characters and pairs of Chinese, that a memory has to itself."""

LEAST_SHARE: Final = 0.5
"""Of these, how many the answer has at least."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the assistant said, and when it was stored."""

    content: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A memory, and since when it stood in the session's context."""

    memory_id: str
    content: str
    since: datetime


def drawn_on(
    replies: Sequence[Reply], said: Sequence[str], shown: Sequence[ShownMemory]
) -> list[str]:
    """Ids of the memories that a later reply shares enough words with, in their order.

    Args:
        replies: of the assistant.
        said: what the user said, which explains the same words.
        shown: what stood in the context.

    """
    heard = frozenset[str]().union(*map(words_of, said))
    spoken = [(reply.at, words_of(reply.content) - heard) for reply in replies]
    found = []
    for memory in shown:
        words = words_of(memory.content) - heard
        if len(words) < LEAST_WORDS:
            continue
        least = LEAST_SHARE * len(words)
        if any(at >= memory.since and len(words & reply) >= least for at, reply in spoken):
            found.append(memory.memory_id)
    return found
