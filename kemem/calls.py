"""Every request the client can make, and what its answer is: no transport, no waiting.

`Memory` and `AsyncMemory` take the same calls from here and differ in how they send them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from kemem.conversations import (
    Appended,
    Extraction,
    Job,
    Message,
    MessageHits,
    Session,
    Usage,
)
from kemem.memories import (
    Added,
    Deleted,
    Feedback,
    HistoryEntry,
    MemoryItem,
    Outcome,
    Restored,
    SearchResults,
)
from kemem.options import Said
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


def add(messages: Said, **fields: Any) -> Call[Added]:
    return _post(Added, "memories", body={"messages": messages, **fields})


def add_later(messages: Said, **fields: Any) -> Call[Job]:
    body = {"messages": messages, **fields}
    return _post(Job, "memories", body=body, params={"async": "true"})


def search(query: str, *, limit: int | None = None, **fields: Any) -> Call[SearchResults]:
    fields["limit"] = _limit(limit)
    return _post(SearchResults, "memories", "search", body={"query": query, **fields})


def get(memory_id: str) -> Call[MemoryItem]:
    return _get(MemoryItem, "memories", memory_id)


def list_memories(
    *, limit: int | None, filters: Mapping[str, Any] | None, **params: Any
) -> Call[Page[MemoryItem]]:
    text = None if filters is None else _json(filters).decode()
    return _list(MemoryItem, "memories", limit=limit, filters=text, **params)


def update(
    memory_id: str, content: str | None, version: int | None, changes: Mapping[str, Any]
) -> Call[MemoryItem]:
    told = dict(changes) if content is None else {"content": content, **changes}
    return Call(
        "PATCH",
        _path("memories", memory_id),
        lambda data: read(MemoryItem, data),
        body=_json(told),
        headers={**_JSON, **_if_match(version)},
    )


def delete(memory_id: str, *, hard: bool) -> Call[None]:
    params = {"hard": "true"} if hard else {}
    return Call("DELETE", _path("memories", memory_id), _nothing, params)


def delete_all(**fields: Any) -> Call[Deleted]:
    # By POST and not by DELETE: it takes filters, and a repeated one answers the same count.
    return _post(Deleted, "memories", "delete", body=fields)


def supersede(memory_id: str, content: str, options: Mapping[str, Any]) -> Call[Outcome]:
    return _post(Outcome, "memories", memory_id, "supersede", body={"content": content, **options})


def history(memory_id: str, *, limit: int | None) -> Call[Page[HistoryEntry]]:
    return _list(HistoryEntry, "memories", memory_id, "history", limit=limit)


def restore(
    memory_id: str, history_id: str, *, reason: str | None, version: int | None
) -> Call[Restored]:
    return _post(
        Restored,
        "memories",
        memory_id,
        "restore",
        body={"history_id": history_id, "reason": reason},
        headers=_if_match(version),
    )


def feedback(memory_id: str, **fields: Any) -> Call[Feedback]:
    return _post(Feedback, "memories", memory_id, "feedback", body=fields)


def append(session_id: str, messages: Said, **fields: Any) -> Call[Appended]:
    if isinstance(messages, str):
        messages = {"role": "user", "content": messages}
    batch = [messages] if isinstance(messages, Mapping) else list(messages)
    return _post(Appended, "sessions", session_id, "messages", body={"messages": batch, **fields})


def messages(session_id: str, *, limit: int | None, **params: Any) -> Call[Page[Message]]:
    return _list(Message, "sessions", session_id, "messages", limit=limit, **params)


def search_messages(query: str, *, limit: int | None = None, **fields: Any) -> Call[MessageHits]:
    fields["limit"] = _limit(limit)
    return _post(MessageHits, "messages", "search", body={"query": query, **fields})


def extract(session_id: str, **fields: Any) -> Call[Extraction]:
    return _post(Extraction, "sessions", session_id, "extract", body=fields)


def end(session_id: str) -> Call[Session]:
    return _post(Session, "sessions", session_id, "end")


def reopen(session_id: str) -> Call[Session]:
    return _post(Session, "sessions", session_id, "reopen")


def job(job_id: str) -> Call[Job]:
    return _get(Job, "jobs", job_id)


def usage(**params: Any) -> Call[Usage]:
    return _get(Usage, "usage", **params)


_IDS = frozenset({"user_id", "agent_id", "session_id", "project_id", "history_id"})

_JSON: Mapping[str, str] = {"Content-Type": "application/json"}


def _get(kind: type[Shape], *segments: str, **params: Any) -> Call[Shape]:
    return Call("GET", _path(*segments), lambda data: read(kind, data), _query(params))


def _list(kind: type[Shape], *segments: str, limit: int | None, **params: Any) -> Call[Page[Shape]]:
    """Pages of at most `limit` rows; None means as many as a page holds."""
    rows = _limit(limit)
    query = _query({**params, "limit": PAGE if rows is None else min(rows, PAGE)})

    def call(query: Mapping[str, str]) -> Call[Page[Shape]]:
        def read_page(data: Any) -> Page[Shape]:
            cursor = data["next_cursor"]
            return Page(
                tuple(read(kind, row) for row in data["items"]),
                None if cursor is None else call({**query, "cursor": cursor}),
            )

        return Call("GET", _path(*segments), read_page, query)

    return call(query)


def _post(
    kind: type[Shape],
    *segments: str,
    body: Mapping[str, Any] | None = None,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Call[Shape]:
    """A POST that has one effect however often it is sent: the key is made here, once."""
    told = None if body is None else _json(_named(body))
    return Call(
        "POST",
        _path(*segments),
        lambda data: read(kind, data),
        params or {},
        told,
        {"Idempotency-Key": uuid4().hex, **(_JSON if told else {}), **(headers or {})},
    )


def _nothing(_data: Any) -> None:
    return None


def _path(*segments: str) -> str:
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


def _limit(limit: int | None) -> int | None:
    if limit is not None and limit < 1:
        raise ValueError("limit must be at least 1, or None")
    return limit


def _named(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is said, without what is not; the ids in it are some."""
    said = {name: value for name, value in fields.items() if value is not None}
    for name in _IDS & said.keys():
        _id(said[name])
    return said


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": str(version)}


def _query(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in _named(params).items()}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(_plain(value)) if isinstance(value, date) else _json(value).decode()


def _json(value: Any) -> bytes:
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
