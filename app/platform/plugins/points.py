"""The points at which processors are called: what each sees there, and what it may change.

A point is passed to the method of its name, which returns it with other items, made with
`dataclasses.replace`, or None to leave it unchanged. Only fields listed in CHANGEABLE may change;
items cannot be added, and owners cannot be changed.
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
    """The tenant, user, agent and session, as far as the request names them."""

    tenant_id: str
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a point; its `id` is valid within the point only.

    Args:
        bound: another item needs it, so it cannot be dropped.

    """

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset()

    id: str
    bound: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AppendedMessage(Item):
    """A message that is about to be stored; tool calls are bound.

    `content` is all of its text, that of its parts included. A new one replaces their texts; images
    and files are not shown, and stay.
    """

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"content", "metadata"})

    role: str
    content: str
    name: str | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReadTurn(Item):
    """A message that an extractor is about to read; the stored message does not change."""

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"content"})

    role: str
    content: str
    name: str | None
    said_at: datetime
    context: bool
    """Whether it was read before and is only context."""


@dataclass(frozen=True, slots=True)
class ProposedMemory(Item):
    """What an extractor proposes; the evidence and the gate judge what comes back.

    When its content changes, its relations for the graph are dropped.
    """

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"content", "confidence", "source_error"})

    content: str
    confidence: float
    source_error: str | None
    """Of a correction: the mistake that it corrects."""
    memory_type: str
    scope: str
    evidence: tuple[str, ...]
    """Ids of the turns that are its evidence."""


@dataclass(frozen=True, slots=True)
class StoredMemory(Item):
    """A memory as it was saved or extracted; the gate judges what comes back.

    The metadata of extracted memories comes from their request and cannot be changed.
    """

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"content", "metadata"})

    content: str
    metadata: Mapping[str, Any]
    memory_type: str
    scope: str
    extracted: bool


@dataclass(frozen=True, slots=True)
class FoundMemory(Item):
    """A hit; `annotations` are returned with it and not stored."""

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"annotations"})

    content: str
    memory_type: str
    scope: str
    confidence: float
    score: float
    annotations: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """A point at which processors are called."""

    NAME: ClassVar[str]
    ITEMS: ClassVar[str]
    MAY_DROP: ClassVar[bool] = True
    MAY_REORDER: ClassVar[bool] = False

    about: About

    @property
    def items(self) -> tuple[Any, ...]:
        """The items of the point, whatever the name of its field."""
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
