"""Columns of every table that is searched by words."""

from typing import Any

from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import SmallInteger
from sqlalchemy.orm import Mapped, mapped_column


class Searched:
    """What the analyser made of a row's text; null until it has seen it.

    `terms` has the frequency of each term, by its key; the rest are traits of the text.
    Derived from the row itself (`ranking/indexed_text.py`), so no history keeps them.
    """

    terms: Mapped[Any | None] = mapped_column(SPARSEVEC(), deferred=True)
    term_count: Mapped[int | None] = mapped_column(SmallInteger, deferred=True)
    word_count: Mapped[int | None] = mapped_column(SmallInteger, deferred=True)
    is_question: Mapped[bool | None] = mapped_column(deferred=True)
    has_time: Mapped[bool | None] = mapped_column(deferred=True)
    # By which version of the analyser; another one's terms are renewed in the background.
    analyser: Mapped[int | None] = mapped_column(SmallInteger, deferred=True)
