"""The calls about memories and conversations, and what reads their answers: no transport.

`Memory` and `AsyncMemory` take the same calls from here and differ in how they send them.
"""

from collections.abc import Mapping
from typing import Any

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
from kemem.writing import (
    Call,
    Page,
    change,
    checked_limit,
    fetch,
    fetch_pages,
    if_match,
    json_bytes,
    post,
    remove,
)


def add(messages: Said, **fields: Any) -> Call[Added]:
    return post(Added, "memories", body={"messages": messages, **fields})


def add_later(messages: Said, **fields: Any) -> Call[Job]:
    body = {"messages": messages, **fields}
    return post(Job, "memories", body=body, params={"async": "true"})


def search(query: str, *, limit: int | None = None, **fields: Any) -> Call[SearchResults]:
    fields["limit"] = checked_limit(limit)
    return post(SearchResults, "memories", "search", body={"query": query, **fields})


def get(memory_id: str) -> Call[MemoryItem]:
    return fetch(MemoryItem, "memories", memory_id)


def list_memories(
    *, limit: int | None, filters: Mapping[str, Any] | None, **params: Any
) -> Call[Page[MemoryItem]]:
    text = None if filters is None else json_bytes(filters).decode()
    return fetch_pages(MemoryItem, "memories", limit=limit, filters=text, **params)


def update(
    memory_id: str, content: str | None, version: int | None, changes: Mapping[str, Any]
) -> Call[MemoryItem]:
    told = dict(changes) if content is None else {"content": content, **changes}
    return change("PATCH", MemoryItem, "memories", memory_id, body=told, version=version)


def delete(memory_id: str, *, hard: bool) -> Call[None]:
    return remove("memories", memory_id, hard=hard or None)


def delete_all(**fields: Any) -> Call[Deleted]:
    # By POST and not by DELETE: it takes filters, and a repeated one answers the same count.
    return post(Deleted, "memories", "delete", body=fields)


def supersede(memory_id: str, content: str, options: Mapping[str, Any]) -> Call[Outcome]:
    return post(Outcome, "memories", memory_id, "supersede", body={"content": content, **options})


def history(memory_id: str, *, limit: int | None) -> Call[Page[HistoryEntry]]:
    return fetch_pages(HistoryEntry, "memories", memory_id, "history", limit=limit)


def restore(
    memory_id: str, history_id: str, *, reason: str | None, version: int | None
) -> Call[Restored]:
    return post(
        Restored,
        "memories",
        memory_id,
        "restore",
        body={"history_id": history_id, "reason": reason},
        headers=if_match(version),
    )


def feedback(memory_id: str, **fields: Any) -> Call[Feedback]:
    return post(Feedback, "memories", memory_id, "feedback", body=fields)


def append(session_id: str, messages: Said, **fields: Any) -> Call[Appended]:
    if isinstance(messages, str):
        messages = {"role": "user", "content": messages}
    batch = [messages] if isinstance(messages, Mapping) else list(messages)
    return post(Appended, "sessions", session_id, "messages", body={"messages": batch, **fields})


def messages(session_id: str, *, limit: int | None, **params: Any) -> Call[Page[Message]]:
    return fetch_pages(Message, "sessions", session_id, "messages", limit=limit, **params)


def search_messages(query: str, *, limit: int | None = None, **fields: Any) -> Call[MessageHits]:
    fields["limit"] = checked_limit(limit)
    return post(MessageHits, "messages", "search", body={"query": query, **fields})


def extract(session_id: str, **fields: Any) -> Call[Extraction]:
    return post(Extraction, "sessions", session_id, "extract", body=fields)


def end(session_id: str) -> Call[Session]:
    return post(Session, "sessions", session_id, "end")


def reopen(session_id: str) -> Call[Session]:
    return post(Session, "sessions", session_id, "reopen")


def job(job_id: str) -> Call[Job]:
    return fetch(Job, "jobs", job_id)


def usage(**params: Any) -> Call[Usage]:
    return fetch(Usage, "usage", **params)
