"""What an append writes of its messages; in a transaction of the caller's."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.errors import (
    MessageConflictError,
    MessageSetAsideError,
    ParentNotFoundError,
    UnknownToolCallError,
)
from app.conversation.messages.extraction_schedule import schedule_indexing
from app.conversation.messages.message_index import Prepared, is_unfinished
from app.conversation.messages.message_processors import input_hash
from app.conversation.messages.models import Message
from app.conversation.messages.pressure import learned_scale, sent_tokens
from app.conversation.messages.repository import MessageRepository
from app.conversation.messages.schemas import MessageCreate, call_ids
from app.conversation.messages.window_repository import WindowRepository
from app.conversation.sessions.errors import SessionEndedError
from app.conversation.sessions.models import Session
from app.conversation.sessions.policy import WindowPolicy
from app.conversation.sessions.repository import Growth, Opened, SessionRepository
from app.errors import IdTakenError
from app.identity.tenants.access import Principal
from app.identity.tenants.repository import TenantRepository
from app.identity.users.repository import UserRepository
from app.platform.database.base import new_id

MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be stored, and what was found out about it before.

    Args:
        stopped: places of messages that are never read for memories.
        prepared: what searches read of it.
        tokens: what each message takes of a window.
        reported: what a provider counted as the input of the call that led to it.
        given: by place, what the request said where a processor made something else of it.

    """

    messages: list[MessageCreate]
    stopped: frozenset[int]
    prepared: Prepared
    tokens: Sequence[int]
    reported: int | None = None
    given: Mapping[int, MessageCreate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """What an append has left.

    Args:
        messages: every message of the batch that has an id of its own or is new, by id.
        order: ids of the new ones, in order.

    """

    messages: dict[str, Message]
    order: list[str]

    @property
    def new(self) -> list[Message]:
        return [self.messages[one] for one in self.order]


async def store(
    db: AsyncSession, principal: Principal, opened: Opened, batch: Batch, policy: WindowPolicy
) -> StoredBatch:
    """Store what is new in a batch, count it, and order what is left to do for searches.

    Raises:
        SessionEndedError, MessageConflictError, MessageSetAsideError, IdTakenError,
        ParentNotFoundError, UnknownToolCallError: as the service says; nothing may be kept.

    """
    session = opened.session
    messages = MessageRepository(db, principal.access, session.session_id)
    given = batch.messages
    ids = [one.message_id for one in given if one.message_id is not None]
    parents = [one.parent_message_id for one in given if one.parent_message_id is not None]
    stored = _repeated(batch, await messages.known(ids), session)
    fresh = [(index, one) for index, one in enumerate(given) if one.message_id not in stored]
    if fresh and session.status == 0:
        raise SessionEndedError(session.session_id)
    await _check_tool_results(messages, fresh, session)
    if not fresh:
        return StoredBatch(stored, [])
    rows = await _rows(messages, fresh, opened, await messages.here(parents), batch)
    if session.window_seq != session.last_sequence_no:
        # An older release has appended, or messages were deleted by other means.
        await WindowRepository(db, principal.access, session).recount(policy)
    growth = _growth(rows, session, batch.reported, policy)
    sessions = SessionRepository(db, principal.access)
    number, created = await sessions.allocate(session, growth, now=opened.now)
    for offset, row in enumerate(rows):
        row["sequence_no"] = number + offset
        row["create_time"] = created + offset * MICROSECOND
    added = await messages.add_all(rows)
    stored |= {message.message_id: message for message in added}
    await UserRepository(db, principal.access).was_active(session.user_id, added[-1].create_time)
    made_by = {row["embedding_model"] for row in rows} - {None, *principal.embedding_models}
    for model in made_by:
        await TenantRepository(db, principal.tenant_id).note_model(model)
    if any(is_unfinished(row) for row in rows):
        await schedule_indexing(db, principal, opened)
    return StoredBatch(stored, [message.message_id for message in added])


def _growth(
    rows: list[dict[str, Any]], session: Session, reported: int | None, policy: WindowPolicy
) -> Growth:
    """What the new rows add, and the provider's count of the call before them."""
    roles = [row["role"] for row in rows]
    tokens = [row["token_count"] for row in rows]
    scale = None
    if reported is not None:
        # The reply was not in the input of the call that gave it.
        reply = _last(roles, "assistant")
        said = tokens if reply is None else tokens[:reply]
        scale = learned_scale(reported, sent_tokens(session, policy) + sum(said))
    return Growth(len(rows), sum(tokens), _last(roles, "user"), scale)


def _last(roles: Sequence[str], role: str) -> int | None:
    return next((place for place in range(len(roles) - 1, -1, -1) if roles[place] == role), None)


def _repeated(batch: Batch, known: dict[str, Message], session: Session) -> dict[str, Message]:
    """Those of the batch that are stored already, by id.

    Raises IdTakenError, MessageConflictError, MessageSetAsideError.
    """
    repeated = {}
    for place, processed in enumerate(batch.messages):
        one = batch.given.get(place, processed)
        before = known.get(one.message_id or "")
        if before is None:
            continue
        if before.session_id != session.session_id:
            raise IdTakenError("message_id", before.message_id)
        if not _same(before, one):
            raise MessageConflictError(before.message_id)
        if any(before.sequence_no in one for one in session.set_aside):
            # Told that it is there, the caller would take it to be in the window.
            raise MessageSetAsideError(before.message_id)
        repeated[before.message_id] = before
    return repeated


def _same(before: Message, one: MessageCreate) -> bool:
    """Whether a stored message is what this one says, or was made of it."""
    sent = _columns(one)
    parent = sent.pop("parent_message_id")
    if not one.chained and before.parent_message_id != parent:
        return False
    if before.input_hash is not None:
        return before.input_hash == input_hash(sent)
    return all(getattr(before, column) == value for column, value in sent.items())


def _columns(one: MessageCreate) -> dict[str, Any]:
    values = one.model_dump(exclude={"message_id", "metadata"})
    return values | {"metadata_": one.metadata}


async def _check_tool_results(
    messages: MessageRepository, fresh: list[tuple[int, MessageCreate]], session: Session
) -> None:
    """Every tool message answers an open call, stored or earlier in the batch.

    Raises UnknownToolCallError.
    """
    here: Counter[str] = Counter()
    before: list[tuple[int, str]] = []
    for index, one in fresh:
        here.update(call_ids(one.tool_calls))
        answers = one.tool_call_id
        if answers is not None and here[answers]:
            here[answers] -= 1
        elif answers is not None:
            before.append((index, answers))
    still_open = await messages.open_calls([one for _, one in before], session.set_aside)
    for index, answers in before:
        if not still_open[answers]:
            raise UnknownToolCallError(index)
        still_open[answers] -= 1


async def _rows(
    messages: MessageRepository,
    fresh: list[tuple[int, MessageCreate]],
    opened: Opened,
    here: set[str],
    batch: Batch,
) -> list[dict[str, Any]]:
    """The rows to insert, each chained to its parent; places are still to be given.

    Raises ParentNotFoundError.
    """
    embedded = not opened.agent.config.get("embedding")
    aside = opened.session.set_aside
    previous = await messages.last_id(aside) if fresh[0][1].chained else None
    rows = []
    for index, one in fresh:
        row = _columns(one)
        given = batch.given.get(index)
        if one.chained:
            row["parent_message_id"] = previous
        elif row["parent_message_id"] is not None and row["parent_message_id"] not in here:
            raise ParentNotFoundError(index, row["parent_message_id"])
        row |= {
            "message_id": one.message_id or new_id("msg"),
            "tenant_id": opened.session.tenant_id,
            "session_id": opened.session.session_id,
            "agent_id": opened.session.agent_id,
            "user_id": opened.session.user_id,
            "token_count": batch.tokens[index],
            "input_hash": None if given is None else input_hash(_columns(given)),
            "captured": opened.remembers and index not in batch.stopped,
            **batch.prepared.of(index, embedded=embedded),
        }
        previous = row["message_id"]
        here.add(previous)
        rows.append(row)
    return rows
