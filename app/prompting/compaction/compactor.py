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

from app.conversation.messages.pressure import Pressure, pressure_of
from app.conversation.messages.window import Window, WindowCut, cut
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
from app.identity.usage.quota import Exhausted
from app.identity.users.repository import UserRepository
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.model_catalogue import SummariserCatalogue
from app.language.llm.summariser import Summariser, SummaryLine, SummaryRequest
from app.language.llm.tokens import TokenCounter
from app.platform.database.base import new_id
from app.platform.jobs.repository import JobRepository
from app.platform.outbox.events import Event
from app.platform.outbox.repository import OutboxRepository
from app.prompting.compaction.eviction import (
    CompactionOptions,
    Eviction,
    SummaryLimits,
    eviction_of,
    line_of,
    next_merge,
)
from app.prompting.compaction.models import SessionSummary
from app.prompting.compaction.repository import SummaryRepository
from app.prompting.compaction.schemas import WhyNot

log = structlog.get_logger()

INLINE_MESSAGES = 500
"""A window of more messages is cut in a thread, so that nobody else waits for it."""

FOLD = "fold"
"""Reason of a summary of summaries."""


@dataclass(frozen=True, slots=True)
class CompactionSnapshot:
    """What a compaction looks at, read in one transaction.

    Args:
        why_not: why there is nothing to do; `eviction` is None then.
        ids: of everything between the pointer and where it would stand.
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


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """Summaries that are new, the first of them of what leaves; and those that stand then."""

    added: Sequence[SessionSummary]
    present: Sequence[SessionSummary]


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
        keeper: CheckpointStore,
        policy: WindowPolicy,
        now: Callable[[], datetime],
    ) -> None:
        """Compact by the deployment's `policy`, as far as agents and sessions have none."""
        self._counter = counter
        self._ledger = ledger
        self._keeper = keeper
        self._policy = policy
        self._now = now

    async def look(
        self, db: AsyncSession, principal: Principal, session_id: str, wish: CompactionOptions
    ) -> CompactionSnapshot:
        """What would leave the window.

        Raises:
            SessionNotFoundError: the caller has no such session.
            DisabledError: its agent or user is disabled.

        """
        session = await SessionRepository(db, principal.access).get(session_id)
        agent = await AgentRepository(db, principal.access).find(session.agent_id)
        user = await UserRepository(db, principal.access).find(session.user_id)
        refuse_disabled(agent, user)
        policy = wish.applied(
            resolve(self._policy, agent.window_policy if agent else None, session.window_policy)
        )
        seen = CompactionSnapshot(
            session=session,
            policy=policy,
            pressure=pressure_of(session, policy),
            config=(agent.config if agent else {}, principal.config),
        )
        if not wish.force and not _is_due(session, policy):
            return replace(seen, why_not="below_trigger")
        window = await WindowRepository(db, principal.access, session).whole(
            WindowRequest(policy, self._now())
        )
        carried = session.window_tokens - sum(one.tokens for one in window.messages)
        overhead = session.summary_tokens + policy.reserved_tokens + max(carried, 0)
        plan = partial(
            _planned, window, policy, overhead, scale=session.token_scale, force=wish.force
        )
        long = len(window.messages) > INLINE_MESSAGES
        found, eviction = await asyncio.to_thread(plan) if long else plan()
        if eviction is None:
            return replace(seen, why_not=None if found.reason == "cut" else found.reason)
        summaries = SummaryRepository(db, principal.access)
        rows = await summaries.evicted(session, eviction.to_seq)
        told = {one.message_id for one in eviction.messages}
        return replace(
            seen,
            eviction=eviction,
            ids=[row["message_id"] for row in rows],
            lines=[line_of(dict(row)) for row in rows if row["message_id"] in told],
            present=await summaries.present(session),
        )

    @property
    def counter_name(self) -> str:
        """Which counter its tokens are by."""
        return self._counter.name

    async def used_up(self, principal: Principal) -> Exhausted | None:
        """What bars a model today, if anything does."""
        return await self._ledger.used_up(principal)

    async def write(
        self,
        principal: Principal,
        seen: CompactionSnapshot,
        wish: CompactionOptions,
        summariser: Summariser,
    ) -> WrittenSummary | None:
        """The summaries to store; None when the messages are as short as what would stand for
        them. Stores nothing.

        Raises:
            ModelUnavailableError: the model gave none.

        """
        assert seen.eviction is not None  # noqa: S101 (the caller has looked)
        limits = SummaryLimits.of(seen.policy)
        request = SummaryRequest(
            limits.words,
            seen.lines,
            [one.content for one in seen.present],
            wish.instructions,
        )
        first = SessionSummary(
            summary_id=new_id("sum"),
            session_id=seen.session.session_id,
            level=0,
            parent_id=seen.present[-1].summary_id if seen.present else None,
            from_seq=seen.eviction.from_seq,
            to_seq=seen.eviction.to_seq,
            evicted_messages=len(seen.eviction.messages),
            evicted_tokens=seen.eviction.tokens,
            reason=wish.reason,
            creator=principal.key_id or None,
        )
        await self._word(principal, summariser, request, limits, first)
        if first.tokens >= seen.eviction.tokens:
            return None
        added, present = [first], [*seen.present, first]
        while (fold := next_merge(present, seen.policy)) is not None:
            parts = present[fold.start : fold.stop]
            request = SummaryRequest(
                limits.words, earlier=[one.content for one in parts], instructions=wish.instructions
            )
            folded = _folded(parts, fold.level, principal)
            await self._word(principal, summariser, request, limits, folded)
            if folded.tokens >= sum(one.tokens for one in parts):
                break
            added.append(folded)
            present[fold.start : fold.stop] = [folded]
        return WrittenSummary(added, present)

    async def _word(
        self,
        principal: Principal,
        summariser: Summariser,
        request: SummaryRequest,
        limits: SummaryLimits,
        row: SessionSummary,
    ) -> None:
        """Give `row` its text. Raises ModelUnavailableError."""
        summary = await self._ledger.ask(principal, summariser, summariser.summarise(request))
        row.content, row.shortened = limits.applied(summary.text, self._counter)
        if not row.content:
            raise ModelUnavailableError("bad_answer", fault="empty")
        row.tokens = self._counter.count(row.content)
        row.model = summariser.name

    async def store(
        self,
        db: AsyncSession,
        principal: Principal,
        seen: CompactionSnapshot,
        written: WrittenSummary,
    ) -> CompactionResult:
        """Store the summaries and move the pointer, in the caller's transaction.

        Raises:
            SessionNotFoundError: it was deleted meanwhile.

        """
        assert seen.eviction is not None  # noqa: S101 (the caller has written)
        session = await SessionRepository(db, principal.access).get(
            seen.session.session_id, lock=True
        )
        if _place(session) != _place(seen.session):
            return CompactionResult("already_compacted")
        summaries = SummaryRepository(db, principal.access)
        if list(await summaries.leaving(session, seen.eviction.to_seq)) != list(seen.ids):
            return CompactionResult("changed")
        snapshot_id, checkpoint_id = await self._keep(db, principal, session.session_id)
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
        """Keep the session as it was; that this cannot be done is no reason not to compact
        .
        """

        async def snapshot() -> str | None:
            kept = await StateRepository(db, principal.access).snapshot(
                session_id, "before_compact"
            )
            return None if kept is None else kept.snapshot_id

        async def checkpoint() -> str | None:
            return await self._keeper.checkpoint(
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
        """Have what left the window read for memories now, where memory is on."""
        agent = await AgentRepository(db, principal.access).find(session.agent_id)
        remembers = session.memory_enabled and agent is not None and agent.memory_enabled
        if not remembers or session.last_extracted_seq >= session.in_context_from:
            return None
        scheduled = await JobRepository(db, principal.tenant_id).schedule(
            rescue_now(
                session,
                to_seq=session.in_context_from,
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


def _planned(
    window: Window, policy: WindowPolicy, overhead: int, *, scale: float, force: bool
) -> tuple[WindowCut, Eviction | None]:
    """Where to cut, and what of that is to leave now."""
    found = cut(window, policy, overhead=overhead, scale=scale, force=force)
    return found, eviction_of(window, found)


def _is_due(session: Session, policy: WindowPolicy) -> bool:
    """Whether the window is full, for whoever asks as for what happens by itself."""
    return pressure_of(session, replace(policy, automatic=True)).due


def _place(session: Session) -> tuple[int, list[str], str]:
    """What a compaction must find as it was: a restore may change any of the three."""
    return session.in_context_from, list(session.summary_ids), str(session.set_aside)


def _folded(parts: Sequence[SessionSummary], level: int, principal: Principal) -> SessionSummary:
    return SessionSummary(
        summary_id=new_id("sum"),
        session_id=parts[0].session_id,
        level=level,
        parent_id=None,
        from_seq=min(one.from_seq for one in parts),
        to_seq=max(one.to_seq for one in parts),
        evicted_messages=sum(one.evicted_messages for one in parts),
        evicted_tokens=sum(one.evicted_tokens for one in parts),
        reason=FOLD,
        creator=principal.key_id or None,
    )


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


HANDLE = "summary_model"
"""Its name in the settings of an agent or a tenant."""


def chosen(catalogue: SummariserCatalogue, configs: Sequence[Mapping[str, Any]]) -> Summariser:
    """The summariser that the first of `configs` names which names one.

    Raises:
        UnknownModelError: this deployment does not have it.

    """
    handles = (config.get(HANDLE) for config in configs)
    handle = next((one for one in handles if isinstance(one, str) and one), None)
    return catalogue.default if handle is None else catalogue.resolve(handle)
