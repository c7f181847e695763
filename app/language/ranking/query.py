"""What a query asks, read once: its words, whom and when it means, and what to embed of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pgvector import SparseVector

from app.language.ranking.packing import Floats, PackedQuery, any_of, packed_query, speaker_marks_in
from app.language.text.conversation_questions import (
    ONE_PLACE,
    ConversationQuestion,
    conversation_question,
    without_frame,
)
from app.language.text.function_words import content_words
from app.language.text.names import name_candidates, without_names
from app.language.text.offload import read_text
from app.language.text.terms import terms
from app.language.text.time_expressions import time_expressions
from app.language.text.traits import asks_when, cjk_share

LONG_QUERY: Final = 48
"""Distinct terms from which a query is a conversation and no question any more: rows that ask, or
tell a time, are then like others, and vectors of few characters say nothing of so many."""


@dataclass(frozen=True, slots=True)
class QueryTraits:
    """What is known of the query."""

    term_counts: Floats
    """How often each of its distinct terms stands in it."""
    cjk: float = 0.0
    """The share of CJK characters among its letters."""
    when: bool = False
    """It asks for a time."""
    conversation: ConversationQuestion = ONE_PLACE
    """Whose words it asks for, and how many of them."""
    dates: tuple[tuple[float, float], ...] = ()
    """Start and end of each date in it, in seconds of the epoch."""

    @property
    def is_long(self) -> bool:
        """Whether it is a conversation."""
        return len(self.term_counts) >= LONG_QUERY


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as the statements and the ranking want it.

    Args:
        packed: asks for the frequency of each term.
        marks: asks whether the query names who speaks.
        traits: of the query itself.
        ranked_texts: texts whose vectors, added up, stand for the query in the ranking.
        vectors: that sum at unit length, by model; filled in by whoever embeds.

    """

    packed: PackedQuery
    marks: SparseVector
    traits: QueryTraits
    ranked_texts: tuple[str, ...]
    vectors: Mapping[str, Any] = field(default_factory=dict)

    def products(self, rows: int) -> int:
        """How many products of vectors it takes to compare so many rows."""
        return rows * (1 + len(self.packed.vectors))

    def embedded(self, by_model: Mapping[str, npt.NDArray[np.float32]]) -> "ParsedQuery":
        """With the vectors of what was embedded: by model a row for the query as it stands, and
        one for each of `ranked_texts`.
        """
        return replace(self, vectors={name: _summed(rows[1:]) for name, rows in by_model.items()})


async def parsed_query(query: str, reference: datetime) -> ParsedQuery:
    """`parse_query`, without holding others up: it reads a character four times."""
    return await read_text(4 * len(query), parse_query, query, reference)


def parse_query(query: str, reference: datetime) -> ParsedQuery:
    """Read a query that is asked at `reference`.

    Names are left out of what is embedded, because a name is near to everything its bearer
    says; the words alone are embedded beside the sentence, because question words are near to
    questions (2 points of recall@10 on MADial, 1 on LoCoMo).
    """
    asked = without_frame(query)
    counts = Counter(terms(asked))
    packed = packed_query(list(counts))
    # Without a capital nothing looks like a name, and any word might be one.
    uncased = asked in {asked.lower(), asked.upper()}
    bare = asked if uncased else without_names(asked, name_candidates(asked))
    words = content_words(bare)
    return ParsedQuery(
        packed,
        any_of(speaker_marks_in(query)),
        QueryTraits(
            cjk=cjk_share(bare),
            term_counts=np.array([counts[term] for term in packed.terms], np.float32),
            when=asks_when(query),
            conversation=conversation_question(query),
            dates=tuple(
                (expression.start.timestamp(), expression.end.timestamp())
                for expression in time_expressions(query, reference)
            ),
        ),
        (bare, words) if words else (bare,),
    )


def _summed(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Unit vectors as one: their sum at unit length, or zeros when they cancel out."""
    total: npt.NDArray[np.float32] = vectors.sum(axis=0)
    length = float(np.linalg.norm(total))
    return total / np.float32(length) if length > 0.0 else total
