"""What mem0 remembers, read from the shapes that it is found in: its API, payloads, history."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

OWNERS: Final = ("user_id", "agent_id", "app_id", "run_id")

_PAYLOAD_FIELDS: Final = {
    *OWNERS, "data", "hash", "created_at", "updated_at", "expiration_date", "text_lemmatized",
}  # fmt: skip
"""Keys of a payload that are mem0's own; the others are the caller's metadata."""

_EVENTS: Final = {"ADD", "UPDATE", "DELETE"}


class UnreadableRecordError(Exception):
    """A record that is not what mem0 writes; the message says which part, never its content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An entry of the history of a memory."""

    change_id: str
    memory_id: str
    event: str
    old: str | None
    new: str | None
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """A memory with its history, oldest change first."""

    memory_id: str
    text: str
    owner: Mapping[str, str | None]
    """By `user_id`, `agent_id`, `app_id` and `run_id`."""
    metadata: Mapping[str, Any]
    categories: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    expiration_date: str | None = None
    history: tuple[Change, ...] = field(default=())


def from_answer(item: Mapping[str, Any], history: tuple[Change, ...] = ()) -> MemoryRecord:
    """A memory as mem0's API answers it.

    Raises:
        UnreadableRecordError: it has no id, text or time.

    """
    return _remembered(
        item,
        item.get("memory"),
        owner={name: item.get(name) for name in OWNERS}
        | {"run_id": item.get("run_id") or item.get("session_id")},
        metadata=_with_speaker(item),
        history=history,
    )


def _with_speaker(item: Mapping[str, Any]) -> Any:
    """The metadata of an answer, with who said it, which answers have beside it."""
    speaker = {name: item[name] for name in ("role", "actor_id") if item.get(name)}
    metadata = item.get("metadata") or {}
    return {**speaker, **metadata} if isinstance(metadata, Mapping) else metadata


def from_payload(
    memory_id: str, payload: Mapping[str, Any], history: tuple[Change, ...] = ()
) -> MemoryRecord:
    """A memory as mem0's stores of vectors have it.

    Raises:
        UnreadableRecordError: it has no text or time.

    """
    metadata = {name: value for name, value in payload.items() if name not in _PAYLOAD_FIELDS}
    return _remembered(
        {**payload, "id": memory_id, "categories": ()},
        payload.get("data"),
        owner={name: payload.get(name) for name in OWNERS},
        metadata={name: value for name, value in metadata.items() if value is not None},
        history=history,
    )


def from_history(history: tuple[Change, ...]) -> MemoryRecord | None:
    """A memory as its history alone tells it; None where it was deleted."""
    last = history[-1]
    if last.event == "DELETE" or last.new is None:
        return None
    item = {"id": last.memory_id, "created_at": history[0].time, "updated_at": last.time}
    return _remembered(item, last.new, owner={}, metadata={}, history=history)


def change_of(row: Mapping[str, Any]) -> Change | None:
    """An entry of the history; None for one that changed nothing.

    Raises:
        UnreadableRecordError: it has no id or time.

    """
    event = str(row.get("event") or "").upper()
    if event not in _EVENTS:
        return None
    # Of an update `created_at` is when the memory was made.
    return Change(
        change_id=_text(row.get("id"), "id"),
        memory_id=_text(row.get("memory_id"), "memory_id"),
        event=event,
        old=row.get("old_memory"),
        new=row.get("new_memory") if event != "DELETE" else None,
        time=_time(row.get("updated_at") or row.get("created_at"), "created_at"),
    )


def _remembered(
    item: Mapping[str, Any],
    text: Any,
    *,
    owner: Mapping[str, Any],
    metadata: Any,
    history: tuple[Change, ...],
) -> MemoryRecord:
    if not isinstance(metadata, Mapping):
        raise UnreadableRecordError("its metadata is no object")
    created = _time(item.get("created_at") or item.get("updated_at"), "created_at")
    updated = item.get("updated_at")
    expires = item.get("expiration_date")
    return MemoryRecord(
        memory_id=_text(item.get("id"), "id"),
        text=_text(text, "text"),
        owner={name: None if value is None else str(value) for name, value in owner.items()},
        metadata=metadata,
        categories=tuple(str(category) for category in item.get("categories") or ()),
        created_at=created,
        updated_at=max(created, created if updated is None else _time(updated, "updated_at")),
        expiration_date=None if expires is None else str(expires)[:10],
        history=tuple(sorted(history, key=lambda change: change.time)),
    )


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UnreadableRecordError(f"it has no {name}")
    return value


def _time(value: Any, name: str) -> datetime:
    """A time; one without an offset is UTC, as mem0 means it."""
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise UnreadableRecordError(f"its {name} is no time") from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
