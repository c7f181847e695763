"""One compaction: read the window, summarise what leaves it, move the pointer.

No transaction is open while a model writes. A summary is stored only if the pointer and the
summaries are still those that were read, so of two compactions at once one counts; and only if
none of the messages that it covers was deleted meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.pressure import Pressure, beside_tokens, pressure_of
from app.conversation.messages.window_repository import WindowRepository, WindowRequest
from app.conversation.sessions.checkpoint_store import CheckpointStore
from app.conversation.sessions.jobs import rescue_now
from app.conversation.sessions.models import Session
from app.conversation.sessions.policy import WindowPolicy, resolve
from app.conversation.sessions.repository import SessionRepository, refuse_disabled
from app.conversation.sessions.state_repository import StateRepository
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Principal
from app.identity.usage.ledger import ModelLedger
from app.identity.usage.paid_answers import AnswerPurpose
from app.identity.usage.quota import Exhausted
from app.identity.usage.repository import AnswerRepository
from app.identity.users.repository import UserRepository
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.summariser import Summariser, Summary, SummaryLine, SummaryRequest
from app.language.llm.tokens import TokenCounter
from app.language.text.offload import read_text
from app.language.text.uploads import scrub_upload_mentions
from app.memory.memories.gate import Gate
from app.platform.jobs.repository import JobRepository
from app.platform.outbox.models import Event
from app.platform.outbox.repository import OutboxRepository
from app.prompting.compaction.eviction import CompactionOptions, Eviction, SummaryLimits, planned
from app.prompting.compaction.repository import SessionSummary, SummaryRepository
from app.prompting.compaction.schemas import WhyNot
from app.prompting.compaction.summary_writer import SummaryWriter, WrittenSummary, lines_of

log = structlog.get_logger()

INLINE_MESSAGES = 500
"""A window of more messages is cut in a thread, so that other requests go on."""


@dataclass(frozen=True, slots=True)
class CompactionSnapshot:
    """What a compaction looks at, read in one transaction.

    Args:
        why_not: why there is nothing to do; `eviction` is None then.
        ids: of all messages between the pointer and its new position.
        config: settings of the agent and of the tenant, which may name a summariser.

    """

    session: Session
    policy: WindowPolicy
    pressure: Pressure
    config: tuple[Mapping[str, Any], ...]
    why_not: WhyNot | None = None
    eviction: Eviction | None = None
    ids: Sequence[str] = ()
    lines: Sequence[SummaryLine] = ()
    present: Sequence[SessionSummary] = ()

    @property
    def purpose(self) -> AnswerPurpose:
        """What a model's answers are kept for."""
        user_id, session_id = self.session.user_id, self.session.session_id
        return AnswerPurpose(f"compact:{session_id}", user_id=user_id, session_id=session_id)


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What was changed; or why nothing was."""

    why_not: WhyNot | None = None
    session: Session | None = None
    pressure: Pressure | None = None
    rescue_job_id: str | None = None
    snapshot_id: str | None = None
    checkpoint_id: str | None = None


class Compactor:
    def __init__(
        self,
        counter: TokenCounter,
        ledger: ModelLedger,
        checkpoint_store: CheckpointStore,
        policy: WindowPolicy,
        gate: Gate,
        now: Callable[[], datetime],
    ) -> None:
        """Compact by the deployment's `policy`, as far as agents and sessions have none.

        No summary keeps what the gate refuses, or tells of an upload beside anything else.
        """
        self._counter = counter
        self._ledger = ledger
        self._checkpoint_store = checkpoint_store
        self._policy = policy
        self._gate = gate
        self._now = now

    async def look(
        self, db: AsyncSession, principal: Principal, session_id: str, options: CompactionOptions
    ) -> CompactionSnapshot:
        """Read the window, and what would leave it; changes nothing.

        `why_not` says why nothing would leave it.

        Raises:
            SessionNotFoundError: the caller has no such session.
            DisabledError: its agent or user is disabled.

        """
        session = await SessionRepository(db, principal.access).get(session_id)
        agent = await AgentRepository(db, principal.access).find(session.agent_id)
        user = await UserRepository(db, principal.access).find(session.user_id)
        refuse_disabled(agent, user)
        policy = options.applied(
            resolve(self._policy, agent.window_policy if agent else None, session.window_policy)
        )
        seen = CompactionSnapshot(
            session=session,
            policy=policy,
            pressure=pressure_of(session, policy),
            config=(agent.config if agent else {}, principal.config),
        )
        if not options.force and not _is_due(session, policy):
            return replace(seen, why_not="below_trigger")
        window = await WindowRepository(db, principal.access, session).whole(
            WindowRequest(policy, self._now())
        )
        policy = options.kept_by(window, policy)
        carried = session.window_tokens - sum(message.tokens for message in window.messages)
        beside = beside_tokens(session, policy)
        overhead = session.summary_tokens + beside + max(carried, 0)
        plan = partial(
            planned, window, policy, overhead, scale=session.token_scale, force=options.force
        )
        long = len(window.messages) > INLINE_MESSAGES
        found, eviction = await asyncio.to_thread(plan) if long else plan()
        if eviction is None:
            return replace(seen, why_not=None if found.reason == "cut" else found.reason)
        summaries = SummaryRepository(db, principal.access)
        rows = await summaries.evicted(session, eviction.to_seq)
        covered = {message.message_id for message in eviction.messages}
        return replace(
            seen,
            eviction=eviction,
            ids=[row["message_id"] for row in rows],
            lines=lines_of(dict(row) for row in rows if row["message_id"] in covered),
            present=await summaries.present(session),
        )

    @property
    def counter(self) -> TokenCounter:
        """What counts its tokens."""
        return self._counter

    @property
    def counter_name(self) -> str:
        """Name of the counter that counts its tokens."""
        return self._counter.name

    async def used_up(self, principal: Principal) -> Exhausted | None:
        """The limit that bars a model today; None when no limit does."""
        return await self._ledger.used_up(principal)

    async def write(
        self,
        principal: Principal,
        seen: CompactionSnapshot,
        options: CompactionOptions,
        summariser: Summariser,
    ) -> WrittenSummary | None:
        """The summaries to store; None when the summary is no shorter than the messages.

        Stores nothing; no transaction may be open.

        Raises:
            ModelUnavailableError: the model gave no summary.

        """
        assert seen.eviction is not None  # noqa: S101 (the caller has looked)
        limits = SummaryLimits.of(seen.policy)

        async def ask(request: SummaryRequest) -> str:
            async def write() -> Summary:
                summary = await summariser.summarise(request)
                text = await read_text(len(summary.text), self._kept, summary.text)
                if not limits.applied(text, self._counter)[0]:
                    # Within the call: what cannot be used is not kept.
                    raise ModelUnavailableError("bad_answer", fault="empty", use=summary.use)
                return replace(summary, text=text)

            question = self._ledger.question(summariser, seen.purpose, request, Summary)
            return (await self._ledger.ask(principal, summariser, question, write)).text

        writer = SummaryWriter(
            ask=ask,
            model=summariser.name,
            session_id=seen.session.session_id,
            creator=principal.key_id or None,
            counter=self._counter,
            policy=seen.policy,
            options=options,
        )
        return await writer.write(seen.eviction, seen.lines, seen.present)

    def _kept(self, text: str) -> str:
        """What a summary keeps: nothing the gate refuses, and of uploads only what says no more."""
        text = self._gate.cleaned(text)
        return scrub_upload_mentions(text) or text

    async def store(
        self,
        db: AsyncSession,
        principal: Principal,
        seen: CompactionSnapshot,
        written: WrittenSummary,
    ) -> CompactionResult:
        """Store the summaries and move the pointer, in the caller's transaction.

        Stores nothing, and says so in `why_not`, when the session was compacted or restored
        meanwhile, or when a message that leaves the window was deleted.

        Raises:
            SessionNotFoundError: it was deleted meanwhile.

        """
        assert seen.eviction is not None  # noqa: S101 (the caller has written)
        session = await SessionRepository(db, principal.access).get(
            seen.session.session_id, lock=True
        )
        if _window_state(session) != _window_state(seen.session):
            return CompactionResult("already_compacted")
        summaries = SummaryRepository(db, principal.access)
        if list(await summaries.leaving(session, seen.eviction.to_seq)) != list(seen.ids):
            return CompactionResult("changed")
        snapshot_id, checkpoint_id = await self._keep(db, principal, session.session_id)
        await AnswerRepository(db, principal.tenant_id).delete(seen.purpose.name)
        await summaries.add_all(written.added)
        await summaries.move(session, seen.eviction.to_seq, written.present)
        await WindowRepository(db, principal.access, session).recount(seen.policy)
        rescue = await self._rescue(db, principal, session)
        await OutboxRepository(db, principal.tenant_id).publish(
            [_event(session, seen.eviction, written)]
        )
        return CompactionResult(
            session=session,
            pressure=pressure_of(session, seen.policy),
            rescue_job_id=rescue,
            snapshot_id=snapshot_id,
            checkpoint_id=checkpoint_id,
        )

    async def _keep(
        self, db: AsyncSession, principal: Principal, session_id: str
    ) -> tuple[str | None, str | None]:
        """Ids of a snapshot and a checkpoint of the session before compaction.

        None where that failed: compaction goes on without it.
        """

        async def snapshot() -> str | None:
            kept = await StateRepository(db, principal.access).snapshot(
                session_id, "before_compact"
            )
            return None if kept is None else kept.snapshot_id

        async def checkpoint() -> str | None:
            return await self._checkpoint_store.checkpoint(
                db,
                principal.access,
                session_id,
                reason="before_compact",
                creator=principal.key_id or None,
            )

        return await _attempt(db, "snapshot", snapshot), await _attempt(
            db, "checkpoint", checkpoint
        )

    async def _rescue(self, db: AsyncSession, principal: Principal, session: Session) -> str | None:
        """Order the extraction of memories from the evicted messages, if memory is on.

        Returns:
            The id of the job; None when memory is off or all of them were read before.

        """
        agent = await AgentRepository(db, principal.access).find(session.agent_id)
        remembers = session.memory_enabled and agent is not None and agent.memory_enabled
        if not remembers or session.last_extracted_seq >= session.in_context_from:
            return None
        scheduled = await JobRepository(db, principal.tenant_id).schedule(
            rescue_now(
                session,
                to_seq=session.in_context_from,
                since=await SessionRepository(db, principal.access).unread_since(session),
                creator=principal.key_id or None,
                payload={},
            )
        )
        return None if scheduled is None else scheduled.job_id


async def _attempt(
    db: AsyncSession, what: str, keep: Callable[[], Awaitable[str | None]]
) -> str | None:
    try:
        async with db.begin_nested():
            return await keep()
    except Exception as error:  # noqa: BLE001 (whatever it is, nothing of it is left)
        log.warning("checkpoint_before_compaction_failed", what=what, error=type(error).__name__)
        return None


def _is_due(session: Session, policy: WindowPolicy) -> bool:
    """Whether the window is full, also where automatic compaction is switched off."""
    return pressure_of(session, replace(policy, automatic=True)).due


def _window_state(session: Session) -> tuple[int, list[str], str]:
    """What must be unchanged when a compaction is stored: a restore may change any of the three."""
    return session.in_context_from, list(session.summary_ids), str(session.set_aside)


def _event(session: Session, eviction: Eviction, written: WrittenSummary) -> Event:
    return Event(
        "session.compacted",
        {
            "session_id": session.session_id,
            "agent_id": session.agent_id,
            "user_id": session.user_id,
            "summary_id": written.added[0].summary_id,
            "model": written.added[0].model,
            "from_seq": eviction.from_seq,
            "to_seq": eviction.to_seq,
            "evicted_messages": len(eviction.messages),
            "evicted_tokens": eviction.tokens,
        },
        session.user_id,
    )
