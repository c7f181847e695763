"""Which memories share telling words with a statement, and may concern it though their vectors are
far from its own; and which ones an answer seems to draw on, by an estimate. Pure.

Of 22 conversations, English and Chinese, vectors alone showed a model up to 14 memories that had
nothing to do with a statement, and not the plan to climb a mountain beside its ascent.

An answer that is worded otherwise is missed, and one that says the same by chance is taken. What
the user said as well counts for nothing, since the answer may have it from there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import log
from typing import Final

from pgvector import SparseVector

from app.language.ranking.packing import DIMENSION
from app.language.text.distinction_words import CHINESE_DIGITS, NUMBER_WORDS
from app.language.text.function_words import CHINESE_STOP_CHARACTERS
from app.language.text.terms import term_key, terms
from app.language.text.time_expressions import find_dates

MOST: Final = 4
"""How many memories a model is shown for their words, beside a statement."""

CANDIDATES: Final = 20
"""How many PostgreSQL names for each, by the number of terms in common."""

RARE: Final = 0.5
"""Share of the candidates above which a term that they have is no reason to show one."""


@cache
def _subject() -> frozenset[str]:
    """The terms of whom statements are about, which tell nothing. Reading Chinese loads the tables
    of its characters, so it waits until a statement is read.
    """
    return frozenset(terms("The user") + terms("用户"))


def words_of(text: str) -> frozenset[str]:
    """The terms of a statement by which another may be about the same thing."""
    return frozenset(terms(text)) - _subject()


def asked_vector(text: str) -> SparseVector:
    """What PostgreSQL is asked for: the terms of a statement, a pair of characters, or a word, for
    twice as much as a character.
    """
    weights = {term_key(term): 2.0 if len(term) > 1 else 1.0 for term in words_of(text)}
    return SparseVector(weights, DIMENSION)


def sharing_words(text: str, candidates: Mapping[str, str]) -> Sequence[str]:
    """Ids of the candidates that share the most telling words with a text, best first.

    What few of the candidates say tells more (inverse document frequency, as in BM25).

    Args:
        candidates: texts by id.

    """
    asked = words_of(text)
    shared = {each: asked & words_of(content) for each, content in candidates.items()}
    often = Counter(term for words in shared.values() for term in words)
    most = max(RARE * len(candidates), 1)
    scores = {
        each: sum(
            log(1 + len(candidates) / often[term]) * len(term[:2])
            for term in words
            if often[term] <= most
        )
        for each, words in shared.items()
    }
    best = sorted((each for each in scores if scores[each] > 0), key=lambda each: -scores[each])
    return best[:MOST]


_ANY_DAY: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""What a text names of the calendar stands in the same place, whenever it is said."""

_NO_MATTER: Final = CHINESE_STOP_CHARACTERS.union(CHINESE_DIGITS)


@cache
def _numbers() -> frozenset[str]:
    return frozenset(terms(" ".join(NUMBER_WORDS)))


def matter_of(text: str) -> frozenset[str]:
    """The words of a statement, and pairs of its characters, that name what it is about: neither
    its subject nor numbers, dates and function words, which two statements share by chance.
    """
    for each in reversed(find_dates(text, _ANY_DAY)):
        text = f"{text[: each.start]} {text[each.end :]}"
    words = words_of(text.replace("用户", " ")) - _numbers()
    return frozenset(
        word
        for word in words
        if len(word) > 1 and not word[0].isdigit() and _NO_MATTER.isdisjoint(word)
    )


def spoken_of(memories: Mapping[str, str], statements: Iterable[str]) -> frozenset[str]:
    """Ids of the memories about which a statement may be: both name something that is rare among
    the memories.

    Args:
        memories: texts by id.

    """
    said = frozenset().union(*(matter_of(statement) for statement in statements))
    shared = {each: said & matter_of(content) for each, content in memories.items()}
    often = Counter(term for words in shared.values() for term in words)
    most = max(RARE * len(memories), 1)
    return frozenset(
        each for each, words in shared.items() if any(often[term] <= most for term in words)
    )


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
