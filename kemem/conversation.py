"""What adapters for frameworks do with a conversation: read it, append to it, clear it, recall."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemem.answers import Answer
from kemem.calls import Call, Operation, Page, discard, fetch, fetch_pages, post
from kemem.context import Context
from kemem.errors import ConflictError, NotFoundError
from kemem.sessions import Appended, Message, Session, refuse_others

BATCH_MESSAGES = 100
BATCH_BYTES = 1_000_000
"""The service takes bodies of 2 MiB by default."""
QUERY_CHARACTERS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedMessages(Answer):
    """Which messages were deleted."""

    message_ids: tuple[str, ...] = ()


def append(
    session_id: str, owner: Mapping[str, str | None], messages: Sequence[Mapping[str, Any]]
) -> Operation[None]:
    """Append messages; up to 100 of up to 1 MB together are stored all or none."""
    for start, end in batches(messages):
        body = {"messages": messages[start:end], **owner}
        yield post(Appended, "sessions", session_id, "messages", body=body)


def newest(
    session_id: str, owner: Mapping[str, str | None], most: int | None
) -> Operation[list[Message]]:
    """The newest messages, oldest first; none of a session that there is not.

    Raises:
        ConflictError: they are those of another user or agent.

    """
    rows: list[Message] = []
    call: Call[Page[Message]] | None = fetch_pages(
        Message, "sessions", session_id, "messages", limit=most, order="desc"
    )
    while call is not None and (most is None or len(rows) < most):
        try:
            page: Page[Message] = yield call
        except NotFoundError:
            return []
        for row in page.items:
            refuse_others(session_id, row, owner)
        rows += page.items
        call = page.following
    return rows[:most][::-1]


def batches(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Where each request begins and ends."""
    start, size = 0, 0
    for place, message in enumerate(messages):
        length = len(json.dumps(message).encode())
        if place > start and (place - start == BATCH_MESSAGES or size + length > BATCH_BYTES):
            yield start, place
            start, size = place, 0
        size += length
    if messages:
        yield start, len(messages)


def clear(session_id: str, owner: Mapping[str, str | None]) -> Operation[None]:
    """Delete all messages for good; the session stays. Raises ConflictError as `newest`."""
    try:
        yield from _check(session_id, owner)
        yield discard(DeletedMessages, "sessions", session_id, "messages", lost={}, confirm=True)
    except NotFoundError:
        return


def recall(session_id: str, owner: Mapping[str, str | None], query: str) -> Operation[str]:
    """The session's context without its messages; the session is made if it is missing."""
    try:
        yield from _check(session_id, owner)
    except NotFoundError:
        try:
            yield post(Session, "sessions", body={"session_id": session_id, **owner})
        except ConflictError as error:
            if error.code != "id_taken":
                raise
            # Another process was faster.
            yield from _check(session_id, owner)
    body = {
        "query": query[:QUERY_CHARACTERS] or None,
        "include": {"window": False, "summary": False},
    }
    context: Context = yield post(Context, "sessions", session_id, "context", body=body)
    return context.prompt


def _check(session_id: str, owner: Mapping[str, str | None]) -> Operation[None]:
    """Raises NotFoundError; ConflictError: the session is that of another user or agent."""
    session: Session = yield fetch(Session, "sessions", session_id)
    refuse_others(session_id, session, owner)
