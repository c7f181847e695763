"""The points at which processors are asked: what each sees there, and what it may change.

A point is handed to the method of its name and comes back with other items in it, made with
`dataclasses.replace`; None leaves it as it is. What is not listed in CHANGEABLE comes back as it
was, what was not there cannot be added, and whose it is cannot be changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

BEFORE_APPEND = "before_append"
BEFORE_EXTRACT = "before_extract"
AFTER_EXTRACT = "after_extract"
BEFORE_STORE = "before_store"
AFTER_SEARCH = "after_search"

POINTS = (BEFORE_APPEND, BEFORE_EXTRACT, AFTER_EXTRACT, BEFORE_STORE, AFTER_SEARCH)


@dataclass(frozen=True, slots=True)
class About:
    """Whom it is about, as far as that is known before anything is looked up."""

    tenant_id: str
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One of the things a point holds; `id` names it there and nowhere else.

    Args:
        bound: something else needs it, so that it cannot be dropped.

    """

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset()

    id: str
    bound: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AppendedMessage(Item):
    """A message that is about to be stored for the first time; calls of tools are bound."""

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"content", "metadata"})

    role: str
    content: str
    name: str | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReadTurn(Item):
    """A message as an extractor is about to read it; the stored one stays as it is."""

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"content"})

    role: str
    content: str
    name: str | None
    said_at: datetime
    context: bool
    """Read before, and there to understand the rest."""


@dataclass(frozen=True, slots=True)
class ProposedMemory(Item):
    """What an extractor proposes; the evidence and the gate judge what comes back.

    With other words, what the graph would have learned of it is forgotten.
    """

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"content", "confidence", "source_error"})

    content: str
    confidence: float
    source_error: str | None
    """Of a correction, the mistake it mends."""
    memory_type: str
    scope: str
    evidence: tuple[str, ...]
    """Ids of the turns that say so."""


@dataclass(frozen=True, slots=True)
class StoredMemory(Item):
    """A memory as it was saved or extracted; the gate judges what comes back.

    The metadata of extracted ones is their request's, and stays.
    """

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"content", "metadata"})

    content: str
    metadata: Mapping[str, Any]
    memory_type: str
    scope: str
    extracted: bool


@dataclass(frozen=True, slots=True)
class FoundMemory(Item):
    """A hit; `annotations` go out with it and are stored nowhere."""

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"annotations"})

    content: str
    memory_type: str
    scope: str
    confidence: float
    score: float
    annotations: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """Where processors are asked."""

    NAME: ClassVar[str]
    ITEMS: ClassVar[str]
    MAY_DROP: ClassVar[bool] = True
    MAY_REORDER: ClassVar[bool] = False

    about: About

    @property
    def items(self) -> tuple[Any, ...]:
        """What it holds, under the name that all points share."""
        return tuple(getattr(self, self.ITEMS))


@dataclass(frozen=True, slots=True)
class BeforeAppend(Point):
    """Messages that are about to be stored; some may be left out."""

    NAME: ClassVar[str] = BEFORE_APPEND
    ITEMS: ClassVar[str] = "messages"

    messages: tuple[AppendedMessage, ...]


@dataclass(frozen=True, slots=True)
class BeforeExtract(Point):
    """Messages that an extractor is about to read; some may be left out."""

    NAME: ClassVar[str] = BEFORE_EXTRACT
    ITEMS: ClassVar[str] = "turns"

    turns: tuple[ReadTurn, ...]


@dataclass(frozen=True, slots=True)
class AfterExtract(Point):
    """What an extractor proposes; some may be left out."""

    NAME: ClassVar[str] = AFTER_EXTRACT
    ITEMS: ClassVar[str] = "proposals"

    proposals: tuple[ProposedMemory, ...]


@dataclass(frozen=True, slots=True)
class BeforeStore(Point):
    """Memories that are about to be stored; none may be left out."""

    NAME: ClassVar[str] = BEFORE_STORE
    ITEMS: ClassVar[str] = "memories"
    MAY_DROP: ClassVar[bool] = False

    memories: tuple[StoredMemory, ...]


@dataclass(frozen=True, slots=True)
class AfterSearch(Point):
    """The hits of a search, best first; they may be left out and reordered."""

    NAME: ClassVar[str] = AFTER_SEARCH
    ITEMS: ClassVar[str] = "hits"
    MAY_REORDER: ClassVar[bool] = True

    query: str
    hits: tuple[FoundMemory, ...]
