"""How a call is written: its path, its query, its body, and what reads its answer.

What is written here is sent as it is: nothing that was not said, and nothing that is no JSON.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import uuid4

from kemem.reading import Answer, read

Result = TypeVar("Result")
Shape = TypeVar("Shape", bound=Answer)

PAGE = 100
"""Most rows that one page of the service holds."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """One request, written out once, so that every attempt at it is the same to the byte."""

    method: str
    path: str
    read: Callable[[Any], Result] = field(repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Page(Generic[Result]):
    """Some rows, and the call for those after them."""

    items: tuple[Result, ...]
    following: "Call[Page[Result]] | None"


Version: TypeAlias = int | Literal["*"]
"""The `version` that was read, or `*` for whatever it is now."""

_IDS = frozenset(
    {
        "user_id",
        "agent_id",
        "session_id",
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
    """One thing."""
    return Call("GET", path(*segments), lambda data: read(kind, data), _query(params))


def fetch_pages(
    kind: type[Shape], /, *segments: str, limit: int | None, **params: Any
) -> Call[Page[Shape]]:
    """Pages of at most `limit` rows; None means as many as a page holds."""
    return _pages(lambda row: read(kind, row), segments, limit, params)


def fetch_texts(*segments: str, limit: int | None) -> Call[Page[str]]:
    """As `fetch_pages`, of rows that are texts, such as ids."""
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
    """A POST that has one effect however often it is sent: the key is made here, once."""
    told = None if body is None else json_bytes(_named(body))
    return Call(
        "POST",
        path(*segments),
        lambda data: read(kind, data),
        params or {},
        told,
        {"Idempotency-Key": uuid4().hex, **(_JSON if told else {}), **(headers or {})},
    )


def change(
    method: Literal["PUT", "PATCH"],
    kind: type[Shape],
    *segments: str,
    body: Mapping[str, Any] | None = None,
    version: Version | None = None,
) -> Call[Shape]:
    """What is said takes the place of what was; None in `body` is said too.

    Args:
        version: the one that was read; the change is refused when it has moved on.

    """
    told = None if body is None else json_bytes(body)
    return Call(
        method,
        path(*segments),
        lambda data: read(kind, data),
        body=told,
        headers={**(_JSON if told else {}), **if_match(version)},
    )


def remove(*segments: str, **params: Any) -> Call[None]:
    """A deletion that is answered with nothing."""
    return Call("DELETE", path(*segments), _nothing, _query(params))


def discard(
    kind: type[Shape], *segments: str, lost: Mapping[str, Any], **params: Any
) -> Call[Shape]:
    """A deletion that is answered with what went.

    Args:
        lost: what can be said when it is gone and the answer that said so was lost.

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
    return "/v1/" + "/".join(quote(_id(segment), safe="") for segment in segments)


def _id(value: object) -> str:
    """An id that means one thing.

    Raises:
        ValueError, TypeError: it is none.

    """
    if not isinstance(value, str):
        raise TypeError(f"an id is a str, not {type(value).__name__}")
    # An empty id or a dot would turn "this one" into "the list", or into another path.
    if not value.strip("."):
        raise ValueError("an id may not be empty")
    return value


def checked_limit(limit: int | None) -> int | None:
    if limit is not None and limit < 1:
        raise ValueError("limit must be at least 1, or None")
    return limit


def _named(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is said, without what is not; the ids in it are some."""
    said = {name: value for name, value in fields.items() if value is not None}
    for name in _IDS & said.keys():
        _id(said[name])
    return said


def if_match(version: Version | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": str(version)}


def _query(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in _named(params).items()}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(_plain(value)) if isinstance(value, date) else json_bytes(value).decode()


def json_bytes(value: Any) -> bytes:
    """`value` as JSON.

    Raises:
        ValueError, TypeError: it cannot be JSON; the message does not quote it.

    """
    text = json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text holds half a surrogate pair, which is no character") from None


def _plain(value: Any) -> Any:
    """What JSON has no type for."""
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError("a datetime needs a zone, such as datetime.now(UTC)")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be sent as JSON")
