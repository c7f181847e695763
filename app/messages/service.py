"""Use cases of messages: append, read, delete."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.database.engine import Database
from app.database.ids import new_id
from app.errors import ConfirmationRequiredError, IdTakenError
from app.messages.errors import (
    MessageConflictError,
    MessageNotFoundError,
    ParentNotFoundError,
    UnknownToolCallError,
)
from app.messages.indexing import Indexer, Prepared, is_unfinished
from app.messages.models import Message
from app.messages.pairing import closure
from app.messages.repository import MessageRepository
from app.messages.scheduling import CaptureRules, as_said, notice, schedule, schedule_indexing
from app.messages.schemas import (
    ExtractionScheduled,
    MessageAppend,
    MessageAppended,
    MessageCreate,
    MessageDelete,
    MessageQuery,
    MessageRead,
    MessagesDeleted,
    call_ids,
)
from app.sessions.errors import SessionEndedError
from app.sessions.repository import Opened, Participants, SessionRepository
from app.tenants.access import Principal
from app.tenants.repository import TenantRepository
from app.text.offload import read_text
from app.text.sensitive import find_sensitive
from app.users.repository import UserRepository
from app.web.idempotency import NEVER, Once
from app.web.metrics import MESSAGES
from app.web.pagination import Page, decode_number, page
from app.web.switches import Switches

log = structlog.get_logger()

LISTED = 1000
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be stored, and what was found out about it before.

    Args:
        stopped: places of messages that are never read for memories.
        prepared: what searches read of it.

    """

    messages: list[MessageCreate]
    stopped: frozenset[int]
    prepared: Prepared


class MessageService:
    def __init__(
        self,
        database: Database,
        switches: Switches,
        capture: CaptureRules,
        indexer: Indexer,
        now: Callable[[], datetime],
        *,
        auto_create: bool,
    ) -> None:
        self._database = database
        self._switches = switches
        self._capture = capture
        self._indexer = indexer
        self._now = now
        self._auto_create = auto_create

    async def append(
        self, principal: Principal, session_id: str, body: MessageAppend, *, once: Once = NEVER
    ) -> MessageAppended:
        """Append a batch to a session, all of it or nothing.

        Numbers have no gap and times rise by at least a microsecond, however many append at
        once. Messages that carry a `message_id` seen before are returned as they are, so a
        batch may be sent again.

        Raises:
            SessionNotFoundError, SessionMismatchError, SessionEndedError, DisabledError,
            UserNotFoundError, AgentNotFoundError, ProjectNotFoundError: about the session.
            MessageConflictError: a `message_id` exists with other content.
            IdTakenError: a `message_id` or the session's id is in use elsewhere.
            ParentNotFoundError, UnknownToolCallError: 422, nothing is stored.
            MemoryDisabledError: memory is switched off.

        """
        self._switches.refuse_writes()
        named = Participants(body.user_id, body.agent_id, body.project_id)
        characters = sum(len(one.content) for one in body.messages)
        seen = await read_text(characters, _seen, body.messages)
        noticed = await read_text(characters, notice, body.messages, self._capture)
        prepared = await self._indexer.prepare(principal, as_said(body.messages, self._now()))
        async with self._database.begin(principal.tenant_id) as db:
            await once.claim(db)
            opened = await SessionRepository(db, principal.access).open_for_append(
                session_id, named, create=self._auto_create, creator=principal.key_id
            )
            batch = Batch(body.messages, noticed.stopped, prepared)
            stored, order = await _store(db, principal, opened, batch)
            extraction = ExtractionScheduled(scheduled=False, reason="nothing_new")
            if order:
                extraction = await schedule(db, principal, opened, noticed, self._capture)
            shown = _appended(body.messages, stored, order, session_id, seen, extraction)
            await once.keep(db, shown, status=201, user_id=opened.session.user_id)
        MESSAGES.inc(len(order))
        log.info("messages_appended", session_id=session_id, created=len(order))
        return shown

    async def get(self, principal: Principal, session_id: str, message_id: str) -> MessageRead:
        """Raises SessionNotFoundError, MessageNotFoundError."""
        async with self._database.begin(principal.tenant_id) as db:
            await SessionRepository(db, principal.access).get(session_id)
            message = await MessageRepository(db, principal.access, session_id).get(message_id)
            return MessageRead.model_validate(message)

    async def list(
        self, principal: Principal, session_id: str, query: MessageQuery
    ) -> Page[MessageRead]:
        """Messages in the order of the conversation.

        Raises:
            SessionNotFoundError: the caller has no such session.
            MessageNotFoundError: `branch` names no message of it.

        """
        start = decode_number(query.cursor)
        async with self._database.begin(principal.tenant_id) as db:
            await SessionRepository(db, principal.access).get(session_id)
            messages = MessageRepository(db, principal.access, session_id)
            if query.branch is not None:
                await messages.get(query.branch)
            rows = await messages.list(
                after_sequence_no=start,
                descending=query.order == "desc",
                limit=query.limit,
                role=query.role,
                since=query.since,
                until=query.until,
                branch=query.branch,
            )
        return page(
            rows,
            query.limit,
            show=MessageRead.model_validate,
            place=lambda message: (message.sequence_no, message.message_id),
        )

    async def delete(
        self, principal: Principal, session_id: str, body: MessageDelete, *, once: Once = NEVER
    ) -> MessagesDeleted:
        """Delete the named messages, or the oldest ones, for good.

        The other half of a tool call goes with it. Numbers are not used again.

        Raises:
            SessionNotFoundError, MessageNotFoundError: nothing was deleted.

        """
        async with self._database.begin(principal.tenant_id) as db:
            await once.claim(db)
            session = await SessionRepository(db, principal.access).get(session_id, lock=True)
            messages = MessageRepository(db, principal.access, session_id)
            if body.message_ids is not None:
                chosen: Sequence[str] = list(dict.fromkeys(body.message_ids))
                here = await messages.here(chosen)
                for message_id in chosen:
                    if message_id not in here:
                        raise MessageNotFoundError(message_id)
            else:
                chosen = await messages.oldest_ids(body.oldest)
            shown = await _delete(messages, chosen, session.user_id, dry_run=body.dry_run)
            return await once.keep(db, shown, status=200, user_id=session.user_id)

    async def delete_all(
        self, principal: Principal, session_id: str, *, confirm: bool, dry_run: bool
    ) -> MessagesDeleted:
        """Delete every message of a session for good.

        Raises:
            SessionNotFoundError: the caller has no such session.
            ConfirmationRequiredError: there are messages and `confirm` is not set.

        """
        async with self._database.begin(principal.tenant_id) as db:
            session = await SessionRepository(db, principal.access).get(session_id, lock=True)
            messages = MessageRepository(db, principal.access, session_id)
            chosen = await messages.oldest_ids(None)
            if chosen and not confirm and not dry_run:
                raise ConfirmationRequiredError("session", {"messages": len(chosen)})
            return await _delete(messages, chosen, session.user_id, dry_run=dry_run)


async def _store(
    db: AsyncSession,
    principal: Principal,
    opened: Opened,
    batch: Batch,
) -> tuple[dict[str, Message], list[str]]:
    """Store what is new in a batch, and order what is left to do for searches.

    Returns:
        Every message of the batch that has an id of its own or is new, by id; and the ids of
        the new ones, in order.

    """
    session = opened.session
    messages = MessageRepository(db, principal.access, session.session_id)
    given = batch.messages
    ids = [one.message_id for one in given if one.message_id is not None]
    parents = [one.parent_message_id for one in given if one.parent_message_id is not None]
    stored = _repeated(given, await messages.known(ids), session.session_id)
    fresh = [(index, one) for index, one in enumerate(given) if one.message_id not in stored]
    if fresh and session.status == 0:
        raise SessionEndedError(session.session_id)
    await _check_tool_results(messages, fresh)
    if not fresh:
        return stored, []
    rows = await _rows(messages, fresh, opened, await messages.here(parents), batch)
    number, moment = await SessionRepository(db, principal.access).allocate(session, len(rows))
    for offset, row in enumerate(rows):
        row["sequence_no"] = number + offset
        row["create_time"] = moment + offset * MICROSECOND
    added = await messages.add_all(rows)
    stored |= {message.message_id: message for message in added}
    await UserRepository(db, principal.access).was_active(session.user_id, added[-1].create_time)
    made_by = {row["embedding_model"] for row in rows} - {None, *principal.embedding_models}
    for model in made_by:
        await TenantRepository(db, principal.tenant_id).note_model(model)
    if any(is_unfinished(row) for row in rows):
        await schedule_indexing(db, principal, opened)
    return stored, [message.message_id for message in added]


def _repeated(
    batch: list[MessageCreate], known: dict[str, Message], session_id: str
) -> dict[str, Message]:
    """Those of the batch that are stored already, by id."""
    repeated = {}
    for one in batch:
        before = known.get(one.message_id or "")
        if before is None:
            continue
        if before.session_id != session_id:
            raise IdTakenError("message_id", before.message_id)
        same = all(
            getattr(before, column) == value
            for column, value in _columns(one).items()
            if column != "parent_message_id" or not one.chained
        )
        if not same:
            raise MessageConflictError(before.message_id)
        repeated[before.message_id] = before
    return repeated


def _columns(one: MessageCreate) -> dict[str, Any]:
    values = one.model_dump(exclude={"message_id", "metadata"})
    return values | {"metadata_": one.metadata}


async def _check_tool_results(
    messages: MessageRepository, fresh: list[tuple[int, MessageCreate]]
) -> None:
    """Every tool message answers an open call, stored or earlier in the batch."""
    wanted = [one.tool_call_id for _, one in fresh if one.tool_call_id is not None]
    still_open = await messages.open_calls(wanted)
    for index, one in fresh:
        still_open.update(call_ids(one.tool_calls))
        if one.tool_call_id is not None:
            if not still_open[one.tool_call_id]:
                raise UnknownToolCallError(index)
            still_open[one.tool_call_id] -= 1


async def _rows(
    messages: MessageRepository,
    fresh: list[tuple[int, MessageCreate]],
    opened: Opened,
    here: set[str],
    batch: Batch,
) -> list[dict[str, Any]]:
    """The rows to insert, each chained to its parent; places are still to be given."""
    embedded = not opened.agent.config.get("embedding")
    previous = await messages.last_id() if fresh[0][1].chained else None
    rows = []
    for index, one in fresh:
        row = _columns(one)
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
            "captured": opened.remembers and index not in batch.stopped,
            **batch.prepared.of(index, embedded=embedded),
        }
        previous = row["message_id"]
        here.add(previous)
        rows.append(row)
    return rows


def _seen(batch: list[MessageCreate]) -> dict[int, list[str]]:
    """What stands in the texts that a memory would be refused for, by place in the batch."""
    found = {index: find_sensitive(one.content) for index, one in enumerate(batch)}
    return {
        index: sorted({finding.detector for finding in findings})
        for index, findings in found.items()
        if findings
    }


def _appended(
    batch: list[MessageCreate],
    stored: dict[str, Message],
    order: list[str],
    session_id: str,
    seen: dict[int, list[str]],
    extraction: ExtractionScheduled,
) -> MessageAppended:
    new = iter(order)
    ids = [
        one.message_id if one.message_id in stored and one.message_id not in order else next(new)
        for one in batch
    ]
    return MessageAppended(
        session_id=session_id,
        created=len(order),
        existing=len(batch) - len(order),
        messages=[MessageRead.model_validate(stored[one]) for one in ids],
        sensitive={ids[index]: detectors for index, detectors in seen.items()},
        extraction=extraction,
    )


async def _delete(
    messages: MessageRepository, chosen: Sequence[str], user_id: str, *, dry_run: bool
) -> MessagesDeleted:
    all_of_them = closure(chosen, await messages.tool_traffic())
    pairs = sorted(all_of_them - set(chosen))
    if dry_run:
        gone = await messages.in_order(sorted(all_of_them))
    else:
        gone = await messages.delete(sorted(all_of_them), user_id=user_id)
    return MessagesDeleted(
        deleted=len(gone), message_ids=gone[:LISTED], pairs=pairs[:LISTED], dry_run=dry_run
    )
