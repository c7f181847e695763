"""What of a batch is new: checked against what is stored, numbered, and counted in its session."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.append_repository import Mentioned, OpenSession
from app.conversation.messages.errors import (
    MessageConflictError,
    MessageSetAsideError,
    ParentNotFoundError,
    UnknownToolCallError,
)
from app.conversation.messages.extraction_schedule import Noticed
from app.conversation.messages.message_index import Prepared
from app.conversation.messages.message_processors import input_hash
from app.conversation.messages.models import Message
from app.conversation.messages.pressure import learned_scale, sent_tokens
from app.conversation.messages.repository import MessageRepository
from app.conversation.messages.schemas import MessageCreate, MessageRead, call_ids
from app.conversation.sessions.policy import WindowPolicy
from app.conversation.sessions.schemas import SessionEndedError
from app.errors import IdTakenError
from app.identity.tenants.access import Access
from app.platform.database.base import new_id

MICROSECOND = timedelta(microseconds=1)

_SAID: Final = (
    "role", "content", "content_type", "content_parts", "tool_calls", "tool_call_id", "name",
)  # fmt: skip
"""Columns that hold what a request says, as it says it."""

_DERIVED = re.compile(r"lc-[0-9a-f]{24}-[0-9a-f]{24}")
"""Ids that `KeMemMiddleware` derives from the session and from what only who said it knows: a key
learns nothing of others by them."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be stored, and what was found out about it before.

    Args:
        seen: by place, what was seen in the text that is sensitive.
        noticed: what it holds for memory.
        tokens: what each message takes of a window.
        prepared: what searches read of it.
        reported: what a provider counted as the input of the call that led to it.
        given: by place, what the request said where a processor made something else of it.
        dropped: how many messages a processor kept from being stored.

    """

    messages: list[MessageCreate]
    seen: Mapping[int, list[str]]
    noticed: Noticed
    tokens: Sequence[int]
    prepared: Prepared
    reported: int | None = None
    given: Mapping[int, MessageCreate] = field(default_factory=dict)
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class NewMessages:
    """What of a batch is to be added.

    Args:
        rows: of the new messages in order, with their numbers and times.
        shown: every message of the batch, in its order.

    """

    rows: list[dict[str, Any]]
    shown: list[MessageRead]


def mentioned(messages: Sequence[MessageCreate]) -> Mentioned:
    """What of these messages has to be looked up."""
    return Mentioned(
        [message.message_id for message in messages if message.message_id is not None],
        [
            message.parent_message_id
            for message in messages
            if message.parent_message_id is not None
        ],
        [message.tool_call_id for message in messages if message.tool_call_id is not None],
    )


async def new_messages(
    db: AsyncSession, access: Access, session: OpenSession, batch: Batch, policy: WindowPolicy
) -> NewMessages:
    """What is new in a batch, counted in `session`; nothing is written.

    Args:
        session: as it was read for this batch; its counts are those of its window.

    Raises:
        SessionEndedError, MessageConflictError, MessageSetAsideError, IdTakenError,
        ParentNotFoundError, UnknownToolCallError: as the service says; nothing may be kept.

    """
    messages = MessageRepository(db, access, session.session_id)
    known = await messages.known(session.known) if session.known else {}
    repeated = _repeated(batch, known, session, access)
    fresh = [
        (place, message) for place, message in enumerate(batch.messages) if place not in repeated
    ]
    if fresh and session.status == 0:
        raise SessionEndedError(session.session_id)
    await _check_tool_results(messages, fresh, session)
    rows = _rows(fresh, session, batch)
    if rows:
        _grow(session, rows, batch.reported, policy)
    added = (_shown(row, session) for row in rows)
    places = range(len(batch.messages))
    return NewMessages(rows, [repeated.get(place) or next(added) for place in places])


def _grow(
    session: OpenSession, rows: list[dict[str, Any]], reported: int | None, policy: WindowPolicy
) -> None:
    """Give the new rows their numbers and times, and count them in the session's window.

    Each takes the next number and the next microsecond. Both only ever rise, whatever the clock
    does and whatever was deleted.

    Args:
        reported: the provider's count of the input of the call before them.

    """
    roles = [row["role"] for row in rows]
    tokens = [row["token_count"] for row in rows]
    if reported is not None:
        # The reply was not in the input of the call that gave it.
        reply = _last(roles, "assistant")
        said = tokens if reply is None else tokens[:reply]
        session.token_scale = learned_scale(reported, sent_tokens(session, policy) + sum(said))
    number, created = session.last_sequence_no + 1, session.now
    if session.last_message_time is not None:
        created = max(created, session.last_message_time + MICROSECOND)
    for offset, row in enumerate(rows):
        row["sequence_no"] = number + offset
        row["create_time"] = created + offset * MICROSECOND
    asked = _last(roles, "user")
    if asked is not None:
        session.last_user_seq = number + asked
    session.last_sequence_no = session.window_seq = rows[-1]["sequence_no"]
    session.last_message_time = rows[-1]["create_time"]
    session.window_messages += len(rows)
    session.window_tokens += sum(tokens)


def _shown(row: Mapping[str, Any], session: OpenSession) -> MessageRead:
    """A new message as its row will be read. It was validated in the request."""
    owner = {
        "session_id": session.session_id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
    }
    return MessageRead.of_valid({**row, **owner})


def _last(roles: Sequence[str], role: str) -> int | None:
    return next((place for place in range(len(roles) - 1, -1, -1) if roles[place] == role), None)


def _repeated(
    batch: Batch, known: Mapping[str, Message], session: OpenSession, access: Access
) -> dict[int, MessageRead]:
    """Those of the batch that are stored already, by place.

    Raises IdTakenError, IdNotAllowedError, MessageConflictError, MessageSetAsideError.
    """
    repeated = {}
    for place, processed in enumerate(batch.messages):
        message = batch.given.get(place, processed)
        before = known.get(message.message_id or "")
        if (before is None or before.session_id != session.session_id) and not _DERIVED.fullmatch(
            message.message_id or ""
        ):
            access.refuse_choice("message_id", message.message_id)
        if before is None:
            continue
        if before.session_id != session.session_id:
            raise IdTakenError("message_id", before.message_id)
        if not _same(before, message):
            raise MessageConflictError(before.message_id)
        if any(before.sequence_no in omitted for omitted in session.set_aside):
            # Told that it is there, the caller would take it to be in the window.
            raise MessageSetAsideError(before.message_id)
        repeated[place] = MessageRead.model_validate(before)
    return repeated


def _same(before: Message, message: MessageCreate) -> bool:
    """Whether a stored message is what this one says, or was made of it."""
    if not message.chained and before.parent_message_id != message.parent_message_id:
        return False
    sent = _compared(message)
    if before.input_hash is not None:
        return before.input_hash == input_hash(sent)
    return all(getattr(before, column) == value for column, value in sent.items())


def _compared(message: MessageCreate) -> dict[str, Any]:
    """What a message is recognised by when it is sent again, by attribute of a stored one."""
    return {name: getattr(message, name) for name in _SAID} | {"metadata_": message.metadata}


async def _check_tool_results(
    messages: MessageRepository, fresh: list[tuple[int, MessageCreate]], session: OpenSession
) -> None:
    """Every tool message answers an open call, stored or earlier in the batch.

    Raises UnknownToolCallError.
    """
    if all(message.tool_call_id is None for _, message in fresh):
        return
    here: Counter[str] = Counter()
    before: list[tuple[int, str]] = []
    for index, message in fresh:
        here.update(call_ids(message.tool_calls))
        answers = message.tool_call_id
        if answers is not None and here[answers]:
            here[answers] -= 1
        elif answers is not None:
            before.append((index, answers))
    wanted = [answers for _, answers in before]
    still_open = session.open_calls.copy()
    if Counter(wanted) - still_open:
        # A late answer, or a result without a call.
        still_open |= await messages.open_calls(wanted, session.set_aside)
    for index, answers in before:
        if not still_open[answers]:
            raise UnknownToolCallError(index)
        still_open[answers] -= 1


def _rows(
    fresh: list[tuple[int, MessageCreate]], session: OpenSession, batch: Batch
) -> list[dict[str, Any]]:
    """The rows to insert, each chained to its parent; places are still to be given.

    Raises ParentNotFoundError.
    """
    embedded = not session.agent_embedding
    previous = session.last_id
    here = {*session.parents}
    rows = []
    for index, message in fresh:
        row = {name: getattr(message, name) for name in _SAID}
        given = batch.given.get(index)
        parent = previous if message.chained else message.parent_message_id
        if not message.chained and parent is not None and parent not in here:
            raise ParentNotFoundError(index, parent)
        previous = message.message_id or new_id("msg")
        row |= {
            "message_id": previous,
            "metadata": message.metadata,
            "parent_message_id": parent,
            "token_count": batch.tokens[index],
            "input_hash": None if given is None else input_hash(_compared(given)),
            "captured": session.remembers and index not in batch.noticed.stopped,
            **batch.prepared.of(index, embedded=embedded),
        }
        here.add(previous)
        rows.append(row)
    return rows
