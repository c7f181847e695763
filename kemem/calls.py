"""Calls: one request each, with path, query, body and what reads the answer. Nothing is sent here.

A call holds what the caller gave and no more; what is no JSON is refused before sending.
"""

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import uuid4

from kemem.answers import Answer, read

Result = TypeVar("Result")
Shape = TypeVar("Shape", bound=Answer)

PAGE = 100
"""Most rows in one page of the service."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """One request. It is built once, so that every attempt sends the same bytes."""

    method: str
    path: str
    read: Callable[[Any], Result] = field(repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Page(Generic[Result]):
    """Some rows, and the call for the next page."""

    items: tuple[Result, ...]
    following: "Call[Page[Result]] | None"


Operation: TypeAlias = Generator[Call[Any] | float, Any, Result]
"""Several calls: it yields calls to send and seconds to pause, receives each answer or
`ApiError`, and returns the result."""

Version: TypeAlias = int | Literal["*"]
"""The `version` that was read, or `*` to change whatever version there is."""

_IDS = frozenset(
    {
        "user_id",
        "agent_id",
        "session_id",
        "run_id",
        "project_id",
        "history_id",
        "parent_id",
        "block_id",
        "owner_id",
        "to_user_id",
        "entity_id",
        "source_id",
        "destination_id",
        "from",
        "to",
    }
)

_JSON: Mapping[str, str] = {"Content-Type": "application/json"}


def fetch(kind: type[Shape], *segments: str, **params: Any) -> Call[Shape]:
    """A GET of one object."""
    return Call("GET", path(*segments), lambda data: read(kind, data), _query(params))


def fetch_pages(
    kind: type[Shape], /, *segments: str, limit: int | None, **params: Any
) -> Call[Page[Shape]]:
    """A GET of pages of at most `limit` rows; None means full pages."""
    return _pages(lambda row: read(kind, row), segments, limit, params)


def fetch_texts(*segments: str, limit: int | None) -> Call[Page[str]]:
    """Like `fetch_pages`, for rows that are strings, such as ids."""
    return _pages(str, segments, limit, {})


def _pages(
    read_row: Callable[[Any], Result],
    segments: tuple[str, ...],
    limit: int | None,
    params: Mapping[str, Any],
) -> Call[Page[Result]]:
    rows = checked_limit(limit)
    query = _query({**params, "limit": PAGE if rows is None else min(rows, PAGE)})

    def call(query: Mapping[str, str]) -> Call[Page[Result]]:
        def read_page(data: Any) -> Page[Result]:
            cursor = data["next_cursor"]
            return Page(
                tuple(read_row(row) for row in data["items"]),
                None if cursor is None else call({**query, "cursor": cursor}),
            )

        return Call("GET", path(*segments), read_page, query)

    return call(query)


def post(
    kind: type[Shape],
    *segments: str,
    body: Mapping[str, Any] | None = None,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Call[Shape]:
    """A POST with an Idempotency-Key of its own: sent again, it has no second effect."""
    content = None if body is None else json_bytes(_given(body))
    return Call(
        "POST",
        path(*segments),
        lambda data: read(kind, data),
        params or {},
        content,
        {"Idempotency-Key": uuid4().hex, **(_JSON if content else {}), **(headers or {})},
    )


def change(
    method: Literal["PUT", "PATCH"],
    kind: type[Shape],
    *segments: str,
    body: Mapping[str, Any] | None = None,
    version: Version | None = None,
) -> Call[Shape]:
    """A PUT or PATCH; a None in `body` is sent as null.

    Args:
        version: the one that was read; the service refuses the change if there is a newer one.

    """
    content = None if body is None else json_bytes(body)
    return Call(
        method,
        path(*segments),
        lambda data: read(kind, data),
        body=content,
        headers={**(_JSON if content else {}), **if_match(version)},
    )


def remove(*segments: str, version: Version | None = None, **params: Any) -> Call[None]:
    """A DELETE without an answer."""
    headers = if_match(version)
    return Call("DELETE", path(*segments), _nothing, _query(params), headers=headers)


def discard(
    kind: type[Shape], *segments: str, lost: Mapping[str, Any], **params: Any
) -> Call[Shape]:
    """A DELETE that answers with what was deleted.

    Args:
        lost: the answer to give if the deletion succeeded and the service's answer was lost.

    """
    return Call(
        "DELETE",
        path(*segments),
        lambda data: read(kind, lost if data is None else data),
        _query(params),
    )


def _nothing(_data: Any) -> None:
    return None


def path(*segments: str) -> str:
    """The path of a resource, each segment escaped."""
    return "/v1/" + "/".join(quote(_id(segment), safe="") for segment in segments)


def _id(value: object) -> str:
    """An id, checked.

    Raises:
        ValueError: it is empty or dots.
        TypeError: it is no `str`.

    """
    if not isinstance(value, str):
        raise TypeError(f"an id is a str, not {type(value).__name__}")
    # An empty id would address the list instead of an item, a dot another path.
    if not value.strip("."):
        raise ValueError("an id may not be empty")
    return value


_OTHER_NAMES = {"top_k": "limit", "text": "content", "data": "content"}


def checked_names(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Raises TypeError for a parameter that has this name elsewhere and another one here."""
    for name, own in _OTHER_NAMES.items():
        if name in options:
            raise TypeError(f"{name} is called {own} here: write {own}=")
    return options


def checked_limit(limit: int | None) -> int | None:
    """Raises ValueError for a limit below 1."""
    if limit is not None and limit < 1:
        raise ValueError("limit must be at least 1, or None")
    return limit


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not None, their ids checked."""
    given = {name: value for name, value in fields.items() if value is not None}
    for name in _IDS & given.keys():
        _id(given[name])
    return given


def if_match(version: Version | None) -> dict[str, str]:
    """The header that makes the service refuse a change of another version."""
    return {} if version is None else {"If-Match": str(version)}


def _query(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in _given(params).items()}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(_plain(value)) if isinstance(value, date) else json_bytes(value).decode()


def json_bytes(value: Any) -> bytes:
    """`value` as JSON.

    Raises:
        ValueError, TypeError: it cannot be JSON; the message does not quote the value.

    """
    text = json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text holds half a surrogate pair, which is no character") from None


def _plain(value: Any) -> Any:
    """A JSON value for a type that JSON lacks."""
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError("a datetime needs a zone, such as datetime.now(UTC)")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be sent as JSON")
