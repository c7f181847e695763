"""The points at which processors are called (what each sees there, and what it may change), and the
checks of what it returns: the rules of input, and no added items.

A point is passed to the method of its name, which returns it with other items, made with
`dataclasses.replace`, or None to leave it unchanged. Only fields listed in CHANGEABLE may change;
items cannot be added, and owners cannot be changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, ClassVar, TypeVar

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


P = TypeVar("P", bound=Point)

Validate = Callable[[Any], Any]
"""Validates an item by the rules of the calling package: the valid item; raises ValueError."""


class InvalidResultError(ValueError):
    """The result is not allowed. The message holds names of fields and no content."""


def checked_result(before: P, after: object, validate: Validate) -> P:
    """The returned point, checked against the point that was passed; None means unchanged.

    Raises:
        ValueError: a change is not allowed, or a value breaks a rule of the package.

    """
    if after is None:
        return before
    if type(after) is not type(before):
        raise InvalidResultError("it is no point of this kind")
    given = getattr(after, before.ITEMS)
    if not isinstance(given, list | tuple):
        raise InvalidResultError(f"{before.ITEMS} is no list")
    for name in (kept.name for kept in fields(before)):
        if name != before.ITEMS and getattr(after, name) != getattr(before, name):
            raise InvalidResultError(f"{name} was changed")
    known = {item.id: item for item in before.items}
    items = []
    for item in given:
        if not isinstance(item, Item) or item.id not in known:
            raise InvalidResultError("something was added, or is there twice")
        items.append(_item(known.pop(item.id), item, validate))
    _check_missing(before, [item.id for item in items], known)
    changes: dict[str, Any] = {before.ITEMS: tuple(items)}
    return replace(before, **changes)


def _item(before: Item, after: Item, validate: Validate) -> Item:
    """The checked item.

    Raises:
        InvalidResultError: it is of another kind, or a field that is not changeable differs.

    """
    if type(after) is not type(before):
        raise InvalidResultError("an item is of another kind")
    changed = {
        field.name
        for field in fields(before)
        if getattr(after, field.name) != getattr(before, field.name)
    }
    if not changed:
        return before
    if wrong := sorted(changed - before.CHANGEABLE):
        raise InvalidResultError(f"{', '.join(wrong)} cannot be changed")
    valid: Item = validate(after)
    return valid


def _check_missing(before: Point, kept: list[str], missing: dict[str, Item]) -> None:
    """Check for dropped and reordered items.

    Raises:
        InvalidResultError: the point does not allow it.

    """
    if missing and not before.MAY_DROP:
        raise InvalidResultError("nothing can be dropped here")
    if any(item.bound for item in missing.values()):
        raise InvalidResultError("something was dropped that another needs")
    if not before.MAY_REORDER:
        order = [item.id for item in before.items if item.id not in missing]
        if kept != order:
            raise InvalidResultError("the order was changed")
