"""The use case of an append: messages, and all that comes with them, in one transaction.

Each text is read and embedded before the transaction, in which one statement reads and one writes
(`append_repository.py`); a change of the working state, calls that wait for a human and a
checkpoint cost further ones.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.append_repository import AppendRepository, OpenSession
from app.conversation.messages.batch import Batch, NewMessages, mentioned, new_messages
from app.conversation.messages.capture import (
    CLIENT_TIME,
    client_time_fault,
    readable_text,
    time_said,
)
from app.conversation.messages.extraction_schedule import (
    CaptureRules,
    Noticed,
    as_said,
    index_order,
    notice,
    put_into_lane,
    reading_order,
    shown_reading,
)
from app.conversation.messages.message_index import IndexedTexts, Indexer, is_unfinished
from app.conversation.messages.message_processors import processed
from app.conversation.messages.pressure import Pressure, is_to_order, pressure_of
from app.conversation.messages.schemas import (
    ExtractionScheduled,
    MessageAppend,
    MessageAppended,
    MessageCreate,
    PressureRead,
    RequestWarning,
)
from app.conversation.messages.service import WindowRules
from app.conversation.messages.window_repository import WindowRepository
from app.conversation.sessions.checkpoint_store import awaited_calls
from app.conversation.sessions.jobs import COMPACT, EXTRACT, compact_soon
from app.conversation.sessions.policy import WindowPolicy, resolve
from app.conversation.sessions.repository import Participants, SessionRepository
from app.conversation.sessions.state_repository import StateRepository
from app.identity.agents.config import Processing
from app.identity.tenants.access import Principal
from app.identity.tenants.repository import TenantRepository
from app.language.llm.tokens import TokenCounter, message_tokens
from app.language.text.offload import INLINE_CHARACTERS, read_text
from app.language.text.sensitive import find_sensitive
from app.platform.jobs.orders import Scheduled
from app.platform.observability.metrics import MESSAGES
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()


class AppendService:
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
        batch = await self._read(principal, session_id, body)
        messages = batch.messages
        async with self._work.write(principal, key, hot=True) as unit:
            session, policy = await self._open(unit.db, principal, session_id, body, messages)
            before = pressure_of(session, policy)
            found = await new_messages(unit.db, principal.access, session, batch, policy)
            reading = ExtractionScheduled(scheduled=False, reason="nothing_new")
            compaction, state_version = None, None
            if found.rows:
                reading, compaction = await self._add(
                    unit.db, principal, session, found, batch.noticed, policy, before
                )
                state_version = await self._keep(unit.db, principal, session, body, found, policy)
            shown = MessageAppended.model_construct(
                session_id=session_id,
                created=len(found.rows),
                existing=len(messages) - len(found.rows),
                dropped=batch.dropped,
                messages=found.shown,
                sensitive={
                    found.shown[place].message_id: names for place, names in batch.seen.items()
                },
                warnings=_warnings(body.messages, self._now()),
                extraction=reading,
                pressure=self._pressure(session, policy, compaction),
                state_version=state_version,
            )
            unit.answer(shown, 201 if shown.created else 200, user_id=session.user_id)
        MESSAGES.inc(shown.created)
        log.info("messages_appended", session_id=session_id, created=shown.created)
        return shown

    async def _read(self, principal: Principal, session_id: str, body: MessageAppend) -> Batch:
        """The batch after its processors, read and embedded.

        Raises ProcessorFailedError.
        """
        taken = await processed(self._processing, self._work.database, principal, session_id, body)
        messages = taken.messages
        seen, noticed, tokens, read = await read_text(
            sum(map(_characters, messages)), self._look_through, messages
        )
        return Batch(
            messages=messages,
            seen=seen,
            noticed=noticed,
            tokens=tokens,
            prepared=await self._indexer.prepared(principal, read),
            reported=None if body.usage is None else body.usage.input_tokens,
            given=taken.given,
            dropped=taken.dropped,
        )

    def _look_through(
        self, messages: list[MessageCreate]
    ) -> tuple[dict[int, list[str]], Noticed, list[int], IndexedTexts]:
        """All that the texts themselves say; takes time in proportion to them."""
        return (
            _seen(messages),
            notice(messages, self._capture),
            _tokens_of(self._windows.counter, messages),
            self._indexer.read_first(as_said(messages, self._now())),
        )

    async def _open(
        self,
        db: AsyncSession,
        principal: Principal,
        session_id: str,
        body: MessageAppend,
        messages: Sequence[MessageCreate],
    ) -> tuple[OpenSession, WindowPolicy]:
        """The session, locked, and its policy; its window is counted."""
        appends = AppendRepository(db, principal.access)
        asked = mentioned(messages)
        session = await appends.open(
            session_id,
            Participants(body.user_id, body.agent_id, body.project_id),
            asked,
            create=self._auto_create,
            creator=principal.key_id,
        )
        policy = resolve(self._windows.policy, session.agent_policy, session.window_policy)
        if session.window_seq != session.last_sequence_no:
            # An older release has appended, or messages were deleted by other means.
            row = await SessionRepository(db, principal.access).get(session_id)
            await WindowRepository(db, principal.access, row).recount(policy)
            session = await appends.find(session_id, asked) or session
        return session, policy

    async def _add(
        self,
        db: AsyncSession,
        principal: Principal,
        session: OpenSession,
        found: NewMessages,
        noticed: Noticed,
        policy: WindowPolicy,
        before: Pressure,
    ) -> tuple[ExtractionScheduled, Scheduled | None]:
        """Store what is new, and order what it makes necessary: reading it for memories, indexing
        it, and, at the policy's thresholds, a compaction.

        Returns:
            What is said of the reading, and the compaction that was ordered.

        """
        creator, first = principal.key_id, found.rows[0]
        since = time_said(first["metadata"], first["create_time"])
        reading = reading_order(session, noticed, self._capture, since=since, creator=creator)
        orders = [] if reading is None else [reading]
        if any(is_unfinished(row) for row in found.rows):
            orders.append(index_order(session, creator=creator))
        now, asked = pressure_of(session, policy), any(row["role"] == "user" for row in found.rows)
        if is_to_order(before, now, asked=asked):
            orders.append(compact_soon(session, creator=creator))
        jobs = await AppendRepository(db, principal.access).add(session, found.rows, orders)
        scheduled = jobs.get(EXTRACT)
        if reading is not None and scheduled is not None:
            number = first["sequence_no"]
            await put_into_lane(db, session, reading, scheduled, first=number)
        made_by = {row["embedding_model"] for row in found.rows}
        for model in made_by - {None, *principal.embedding_models}:
            await TenantRepository(db, principal.tenant_id).note_model(model)
        return shown_reading(reading, scheduled, noticed), jobs.get(COMPACT)

    async def _keep(
        self,
        db: AsyncSession,
        principal: Principal,
        session: OpenSession,
        body: MessageAppend,
        found: NewMessages,
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
            for row in found.rows
            if row["tool_calls"]
            for call in awaited_calls(
                row["message_id"], row["sequence_no"], row["tool_calls"], row["metadata"]
            )
        ]
        if calls:
            approval_time = timedelta(hours=policy.approval_hours)
            await store.ask(db, access, session_id, calls, expires_in=approval_time)
        every, last = policy.checkpoint_every, session.last_sequence_no
        if every and last // every != (last - len(found.rows)) // every:
            await store.checkpoint(
                db,
                access,
                session_id,
                reason="periodic",
                creator=principal.key_id,
                now=session.now,
            )
        return version

    def _pressure(
        self, session: OpenSession, policy: WindowPolicy, ordered: Scheduled | None
    ) -> PressureRead:
        """How full the window is, and which job compacts it where it is too full."""
        pressure = pressure_of(session, policy)
        job_id = session.compaction_job_id if pressure.level == "flush" else None
        if ordered is not None:
            job_id = ordered.job_id
        return PressureRead(**pressure.shown(job_id=job_id), counter=self._windows.counter.name)


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


def _characters(message: MessageCreate) -> int:
    """About how much there is to read; of data only the beginning is read, and a call or a part may
    be of any length.
    """
    texts = (part.get("text") for part in message.content_parts or ())
    length = len(message.content) + sum(len(text) for text in texts if isinstance(text, str))
    if message.tool_calls or message.content_parts:
        return max(length, INLINE_CHARACTERS)
    return length


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
