"""Use cases of messages: append, read, delete."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.batch import Batch, StoredBatch, store
from app.conversation.messages.capture import CLIENT_TIME, client_time_fault, readable_text
from app.conversation.messages.errors import MessageNotFoundError
from app.conversation.messages.extraction_schedule import CaptureRules, as_said, notice, schedule
from app.conversation.messages.message_index import Indexer
from app.conversation.messages.message_processors import processed
from app.conversation.messages.pressure import Pressure, is_to_order, pressure_of
from app.conversation.messages.repository import MessageRepository
from app.conversation.messages.schemas import (
    ExtractionScheduled,
    MessageAppend,
    MessageAppended,
    MessageCreate,
    MessageDelete,
    MessageQuery,
    MessageRead,
    MessagesDeleted,
    PressureRead,
    RequestWarning,
)
from app.conversation.messages.slice_schemas import MessageSlice, MessageSliceQuery
from app.conversation.messages.window import closure
from app.conversation.messages.window_repository import WindowRepository
from app.conversation.sessions.checkpoint_store import CheckpointStore, awaited_calls
from app.conversation.sessions.jobs import COMPACT, compact_soon
from app.conversation.sessions.models import Session
from app.conversation.sessions.policy import WindowPolicy, resolve
from app.conversation.sessions.repository import Participants, SessionRepository
from app.conversation.sessions.state_repository import StateRepository
from app.errors import ConfirmationRequiredError
from app.identity.agents.agent_processors import Processing
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Principal
from app.language.llm.tokens import TokenCounter, fitting, message_tokens
from app.language.text.offload import INLINE_CHARACTERS, read_text
from app.language.text.sensitive import find_sensitive
from app.platform.jobs.repository import JobRepository
from app.platform.observability.metrics import MESSAGES
from app.platform.values.pagination import Page, decode_number, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

LISTED = 1000


@dataclass(frozen=True, slots=True)
class WindowRules:
    """What the deployment says about windows.

    Args:
        policy: for agents and sessions without a policy of their own.
        checkpoint_store: keeps checkpoints, and calls that wait for a human.

    """

    counter: TokenCounter
    policy: WindowPolicy
    checkpoint_store: CheckpointStore


class MessageService:
    def __init__(
        self,
        work: Work,
        capture: CaptureRules,
        indexer: Indexer,
        windows: WindowRules,
        now: Callable[[], datetime],
        processing: Processing,
        *,
        auto_create: bool,
    ) -> None:
        self._work = work
        self._processing = processing
        self._capture = capture
        self._indexer = indexer
        self._windows = windows
        self._now = now
        self._auto_create = auto_create

    async def append(
        self,
        principal: Principal,
        session_id: str,
        body: MessageAppend,
        *,
        key: IdempotencyKey | None = None,
    ) -> MessageAppended:
        """Append a batch to a session, all of it or nothing.

        Numbers have no gap and times rise, however many append at once. Messages whose
        `message_id` was seen before are returned as they are: a batch may be sent again.

        Raises:
            SessionNotFoundError, SessionMismatchError, SessionEndedError, DisabledError,
            UserNotFoundError, AgentNotFoundError, ProjectNotFoundError: about the session.
            MessageConflictError, MessageSetAsideError: a `message_id` exists with other
                content, or on a branch that was left.
            VersionConflictError, StateTooLargeError: about the working state.
            IdTakenError: a `message_id` or the session's id is in use elsewhere.
            ParentNotFoundError, UnknownToolCallError: 422, nothing is stored.
            MemoryDisabledError: memory is switched off.
            ProcessorFailedError: one of the agent's failed that may not.

        """
        self._work.refuse_disabled()
        named = Participants(body.user_id, body.agent_id, body.project_id)
        taken = await processed(self._processing, self._work.database, principal, session_id, body)
        messages = taken.messages
        characters = sum(len(one.content) + _length_of_parts(one) for one in messages)
        seen = await read_text(characters, _seen, messages)
        noticed = await read_text(characters, notice, messages, self._capture)
        tokens = await self._tokens(messages)
        prepared = await self._indexer.prepare(principal, as_said(messages, self._now()))
        reported = None if body.usage is None else body.usage.input_tokens
        async with self._work.write(principal, key) as unit:
            opened = await SessionRepository(unit.db, principal.access).open_for_append(
                session_id, named, create=self._auto_create, creator=principal.key_id
            )
            session = opened.session
            own = (opened.agent.window_policy, session.window_policy)
            policy = resolve(self._windows.policy, *own)
            before = pressure_of(session, policy)
            batch = Batch(messages, noticed.stopped, prepared, tokens, reported, taken.given)
            stored = await store(unit.db, principal, opened, batch, policy)
            new, state_version = stored.new, None
            reading = ExtractionScheduled(scheduled=False, reason="nothing_new")
            if new:
                state_version = await self._keep(unit.db, principal, session, body, stored, policy)
                reading = await schedule(unit.db, principal, opened, new[0], noticed, self._capture)
            shown = _appended(messages, stored, session_id, seen, reading)
            shown.dropped, shown.state_version = taken.dropped, state_version
            shown.warnings = _warnings(body.messages, self._now())
            shown.pressure = await self._pressure(
                unit.db, principal, session, policy, before, stored
            )
            unit.answer(shown, 201 if shown.created else 200, user_id=session.user_id)
        MESSAGES.inc(len(new))
        log.info("messages_appended", session_id=session_id, created=len(new))
        return shown

    async def _tokens(self, messages: Sequence[MessageCreate]) -> list[int]:
        """What each message takes of a window."""
        characters = sum(
            # A call or a part may be of any length.
            INLINE_CHARACTERS if one.tool_calls or one.content_parts else len(one.content)
            for one in messages
        )
        return await read_text(characters, _tokens_of, self._windows.counter, messages)

    async def _keep(
        self,
        db: AsyncSession,
        principal: Principal,
        session: Session,
        body: MessageAppend,
        stored: StoredBatch,
        policy: WindowPolicy,
    ) -> int | None:
        """What comes with new messages: the state's change, calls that wait, a checkpoint.

        Returns:
            The version of the working state when it was changed.

        """
        access, store, session_id = (
            principal.access,
            self._windows.checkpoint_store,
            session.session_id,
        )
        version = None
        if body.state is not None:
            states = StateRepository(db, access)
            version = (await states.patch(session_id, body.state, body.state_version)).version
        calls = [
            call
            for one in stored.new
            if one.tool_calls
            for call in awaited_calls(
                one.message_id, one.sequence_no, one.tool_calls, one.metadata_
            )
        ]
        if calls:
            approval_time = timedelta(hours=policy.approval_hours)
            await store.ask(db, access, session_id, calls, expires_in=approval_time)
        every, last = policy.checkpoint_every, session.last_sequence_no
        if every and last // every != (last - len(stored.order)) // every:
            await store.checkpoint(
                db, access, session_id, reason="periodic", creator=principal.key_id
            )
        return version

    async def _pressure(
        self,
        db: AsyncSession,
        principal: Principal,
        session: Session,
        policy: WindowPolicy,
        before: Pressure,
        stored: StoredBatch,
    ) -> PressureRead:
        """How full the window is now; at the policy's thresholds compaction is ordered."""
        pressure, job_id = pressure_of(session, policy), None
        asked = any(one.role == "user" for one in stored.new)
        jobs = JobRepository(db, principal.tenant_id)
        if stored.order and is_to_order(before, pressure, asked=asked):
            scheduled = await jobs.schedule(compact_soon(session, creator=principal.key_id))
            job_id = None if scheduled is None else scheduled.job_id
        elif pressure.level == "flush":
            job_id = await jobs.live_id(COMPACT, session.session_id)
        shown = pressure.shown(job_id=job_id)
        return PressureRead(**shown, counter=self._windows.counter.name)

    async def get(
        self,
        principal: Principal,
        session_id: str,
        message_id: str | int,
        query: MessageSliceQuery,
    ) -> MessageSlice:
        """A message, or a stretch of its text: empty where it has no more.

        Args:
            message_id: its id, or its number in the session.

        Raises:
            SessionNotFoundError, MessageNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            message = await MessageRepository(db, principal.access, session_id).get(message_id)
            return MessageSlice.of(MessageRead.model_validate(message), query)

    async def list_messages(
        self, principal: Principal, session_id: str, query: MessageQuery
    ) -> Page[MessageRead]:
        """Messages in the order of the conversation.

        Raises:
            SessionNotFoundError: the caller has no such session.
            MessageNotFoundError: `branch` or `before` names no message of it.

        """
        start = decode_number(query.cursor, "messages")
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            messages = MessageRepository(db, principal.access, session_id)
            if query.branch is not None:
                await messages.get(query.branch)
            before = None
            if query.before is not None:
                before = (await messages.get(query.before)).sequence_no
            rows = await messages.list_messages(
                after_sequence_no=start,
                descending=query.order == "desc",
                limit=query.limit,
                role=query.role,
                since=query.since,
                until=query.until,
                branch=query.branch,
                words=query.query,
                before=before,
            )
        counter = self._windows.counter
        return page(
            "messages",
            rows,
            query.limit,
            show=MessageRead.model_validate,
            place=lambda message: (message.sequence_no, message.message_id),
            fits=lambda items: fitting(counter, (one.content for one in items), query.max_tokens),
        )

    async def delete(
        self,
        principal: Principal,
        session_id: str,
        body: MessageDelete,
        *,
        key: IdempotencyKey | None = None,
    ) -> MessagesDeleted:
        """Delete the named messages, or the oldest ones, for good.

        The other half of a tool call goes with it. Numbers are not used again.

        Raises:
            SessionNotFoundError, MessageNotFoundError: nothing was deleted.

        """
        async with self._work.write(principal, key, while_disabled=True) as unit:
            session = await SessionRepository(unit.db, principal.access).get(session_id, lock=True)
            messages = MessageRepository(unit.db, principal.access, session_id)
            if body.message_ids is not None:
                chosen: Sequence[str] = list(dict.fromkeys(body.message_ids))
                here = await messages.here(chosen)
                for message_id in chosen:
                    if message_id not in here:
                        raise MessageNotFoundError(message_id)
            else:
                chosen = await messages.oldest_ids(body.oldest)
            shown = await self._delete(unit.db, principal, session, chosen, dry_run=body.dry_run)
            return unit.answer(shown, 200, user_id=session.user_id)

    async def delete_all(
        self, principal: Principal, session_id: str, *, confirm: bool, dry_run: bool
    ) -> MessagesDeleted:
        """Delete every message of a session for good.

        Raises:
            SessionNotFoundError: the caller has no such session.
            ConfirmationRequiredError: there are messages and `confirm` is not set.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            session = await SessionRepository(unit.db, principal.access).get(session_id, lock=True)
            messages = MessageRepository(unit.db, principal.access, session_id)
            chosen = await messages.oldest_ids(None)
            if chosen and not confirm and not dry_run:
                raise ConfirmationRequiredError("session", {"messages": len(chosen)})
            return await self._delete(unit.db, principal, session, chosen, dry_run=dry_run)

    async def _delete(
        self,
        db: AsyncSession,
        principal: Principal,
        session: Session,
        chosen: Sequence[str],
        *,
        dry_run: bool,
    ) -> MessagesDeleted:
        messages = MessageRepository(db, principal.access, session.session_id)
        all_of_them = closure(chosen, await messages.tool_traffic())
        pairs = sorted(all_of_them - set(chosen))
        if dry_run:
            gone = await messages.in_order(sorted(all_of_them))
        else:
            gone = await messages.delete(sorted(all_of_them), user_id=session.user_id)
            await self._windows.checkpoint_store.forget(
                db, principal.access, session.session_id, gone
            )
            agent = await AgentRepository(db, principal.access).get(session.agent_id)
            policy = resolve(self._windows.policy, agent.window_policy, session.window_policy)
            await WindowRepository(db, principal.access, session).recount_deleted(policy)
        return MessagesDeleted(
            deleted=len(gone), message_ids=gone[:LISTED], pairs=pairs[:LISTED], dry_run=dry_run
        )


def _seen(batch: list[MessageCreate]) -> dict[int, list[str]]:
    """Sensitive content in the texts, by place in the batch."""
    found = {
        index: find_sensitive(readable_text(one.content, one.content_parts))
        for index, one in enumerate(batch)
    }
    return {
        index: sorted({finding.detector for finding in findings})
        for index, findings in found.items()
        if findings
    }


def _length_of_parts(message: MessageCreate) -> int:
    """Characters of the texts among its parts; of data only the beginning is read."""
    texts = (part.get("text") for part in message.content_parts or ())
    return sum(len(text) for text in texts if isinstance(text, str))


def _tokens_of(counter: TokenCounter, messages: Sequence[MessageCreate]) -> list[int]:
    return [
        message_tokens(
            counter,
            content=one.content,
            tool_calls=one.tool_calls,
            content_parts=one.content_parts,
            name=one.name,
        )
        for one in messages
    ]


def _warnings(batch: Sequence[MessageCreate], now: datetime) -> list[RequestWarning]:
    faults = (
        (place, client_time_fault(message.metadata, now)) for place, message in enumerate(batch)
    )
    return [
        RequestWarning(
            code="client_time_ignored",
            location=["body", "messages", str(place), "metadata", CLIENT_TIME],
            detail=fault,
        )
        for place, fault in faults
        if fault is not None
    ]


def _appended(
    batch: list[MessageCreate],
    stored: StoredBatch,
    session_id: str,
    seen: dict[int, list[str]],
    extraction: ExtractionScheduled,
) -> MessageAppended:
    order, messages = stored.order, stored.messages
    new = iter(order)
    ids = [
        one.message_id if one.message_id in messages and one.message_id not in order else next(new)
        for one in batch
    ]
    return MessageAppended(
        session_id=session_id,
        created=len(order),
        existing=len(batch) - len(order),
        messages=[MessageRead.model_validate(messages[one]) for one in ids],
        sensitive={ids[index]: detectors for index, detectors in seen.items()},
        extraction=extraction,
    )
