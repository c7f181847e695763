"""Keyset pagination: a page starts after a row, never at an offset.

An offset shifts under the reader when a row is inserted before it, so a client would see a
row twice or not at all. A cursor names the last row already seen, and the list it is of: tenant,
acting user, path and filters of the request. They are noted for every request, so that no
service can forget to.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, Field

from app.errors import UnprocessableError
from app.platform.values.fields import LARGEST_INTEGER, LONGEST, Schema, in_utc

Item = TypeVar("Item")
Row = TypeVar("Row")

Limit = Annotated[int, Field(ge=1, le=100, description="Rows per page.")]
Order = Annotated[Literal["asc", "desc"], Field(description="Oldest or newest first.")]
CursorText = Annotated[str, Field(max_length=512, description="`next_cursor` of the page before.")]

MaxTokens = Annotated[
    int,
    Field(
        ge=1,
        le=10_000_000,
        description="The page ends before the contents of its items take more tokens together. It "
        "has one item at least, however long that is.",
    ),
]

Position = tuple[datetime | int, str]


_PAGING = {"cursor", "limit", "max_tokens"}
"""Parameters that may change from one page to the next."""

_listed: ContextVar[tuple[str, ...]] = ContextVar("listed", default=())


def note_list(query: str, *whose: str) -> None:
    """Say which list the request is about, before it makes or reads a cursor.

    Args:
        query: of its URL; what it filters by belongs to the list.
        whose: the tenant, the user and the path.

    """
    _listed.set((query, *whose))


def _list_of(name: str) -> str:
    """The list of this name that the request is about."""
    if not (noted := _listed.get()):
        return name
    query, *whose = noted
    filters = sorted(
        parameter for parameter in parse_qsl(query, True) if parameter[0] not in _PAGING
    )
    text = json.dumps([whose, filters])
    return f"{name}.{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


class InvalidCursorError(UnprocessableError):
    code = "invalid_cursor"
    title = "Cursor not valid"

    def __init__(self) -> None:
        super().__init__(
            "`cursor` is not one this list gave out with these filters: start without it.",
            errors=[{"location": ["query", "cursor"], "detail": "not a cursor of this list"}],
        )


class PageQuery(Schema):
    """Query parameters of every list."""

    limit: Limit = 100
    cursor: CursorText | None = None


class ContentQuery(PageQuery):
    """Query parameters of a list whose items have a content."""

    max_tokens: MaxTokens | None = None


class Page(BaseModel, Generic[Item]):
    """One page; `next_cursor` is null on the last."""

    items: list[Item]
    next_cursor: str | None = None


def encode(name: str, value: datetime | int, row_id: str) -> str:
    """A cursor of the list of this name, for the row with this place in its order and this id."""
    place = value if isinstance(value, int) else value.isoformat()
    # As it is: 64 characters written as escapes would be longer than a cursor may be.
    raw = json.dumps([_list_of(name), place, row_id], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def decode_time(cursor: str | None, name: str) -> tuple[datetime, str] | None:
    """The time and id after which a page begins, or None for the first page.

    Raises:
        InvalidCursorError: the text is not a cursor, or a cursor of another list.

    """
    if cursor is None:
        return None
    place, row_id = _decode(cursor, name)
    try:
        value = datetime.fromisoformat(place)
    except (ValueError, TypeError):
        raise InvalidCursorError from None
    if value.tzinfo is None:
        raise InvalidCursorError
    try:
        return in_utc(value), row_id
    except ValueError:
        raise InvalidCursorError from None


def decode_number(cursor: str | None, name: str) -> int | None:
    """The number after which a page begins, or None for the first page.

    Raises:
        InvalidCursorError: the text is not a cursor, or a cursor of another list.

    """
    if cursor is None:
        return None
    place, _ = _decode(cursor, name)
    if type(place) is not int or abs(place) > LARGEST_INTEGER:
        raise InvalidCursorError
    return place


def _decode(cursor: str, name: str) -> tuple[Any, str]:
    """Raises InvalidCursorError."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        theirs, place, row_id = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, RecursionError):
        raise InvalidCursorError from None
    if (
        theirs != _list_of(name)
        or not isinstance(row_id, str)
        or len(row_id) > LONGEST
        or not row_id.isprintable()
    ):
        raise InvalidCursorError
    return place, row_id


def page(
    name: str,
    rows: Sequence[Row],
    limit: int,
    *,
    show: Callable[[Row], Item],
    place: Callable[[Row], Position],
    fits: Callable[[Sequence[Item]], int] | None = None,
) -> Page[Item]:
    """A page out of `limit + 1` rows; the extra row only says that another page follows.

    Args:
        name: of the list; its cursors are refused by every other.
        fits: how many of the items, from the first on, may be on the page.

    """
    items = [show(row) for row in rows[:limit]]
    if fits is not None:
        items = items[: fits(items)]
    more = len(rows) > len(items)
    return Page(
        items=items,
        next_cursor=encode(name, *place(rows[len(items) - 1])) if more and items else None,
    )
