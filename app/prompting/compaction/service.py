"""Use cases of compaction on request, and of reading summaries."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from app.conversation.messages.pressure import Pressure
from app.conversation.messages.schemas import PressureRead
from app.conversation.messages.window_service import StrategyFactory, pick_of
from app.conversation.sessions.repository import SessionRepository
from app.identity.tenants.access import Principal
from app.identity.usage.quota import QuotaExhaustedError
from app.language.llm.model_catalogue import SummariserCatalogue
from app.language.llm.summariser import Summariser
from app.language.llm.tokens import fitting
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.compaction.compactor import (
    CompactionResult,
    CompactionSnapshot,
    Compactor,
)
from app.prompting.compaction.eviction import CompactionOptions
from app.prompting.compaction.repository import SessionSummary, SummaryRepository
from app.prompting.compaction.schemas import (
    CompactAnswer,
    CompactRequest,
    EvictedRead,
    SummaryQuery,
    SummaryRead,
)
from app.prompting.compaction.summary_writer import WrittenSummary, chosen_summariser

ROUNDS = 3
"""How often a compaction is tried when messages that it covers are deleted meanwhile."""


class CompactionService:
    def __init__(
        self,
        work: Work,
        compactor: Compactor,
        summarisers: SummariserCatalogue,
        strategies: Mapping[str, StrategyFactory],
        now: Callable[[], datetime],
    ) -> None:
        self._strategies = strategies
        self._work = work
        self._compactor = compactor
        self._summarisers = summarisers
        self._now = now

    async def compact(
        self,
        principal: Principal,
        session_id: str,
        body: CompactRequest,
        *,
        key: IdempotencyKey | None = None,
    ) -> CompactAnswer:
        """Put the older messages of a session's window into a summary; none is deleted.

        `why_not` of the answer says why nothing was compacted. Safe to repeat: messages that have
        left the window are not summarised again.

        Raises:
            SessionNotFoundError: the caller has no such session.
            UnknownStrategyError, InvalidStrategyError: it cannot choose what stays.
            UnknownModelError: the agent names a summariser that this deployment does not have.
            QuotaExhaustedError: the tenant's day is used up; nothing was changed.
            ModelUnavailableError: the model gave no summary, and nothing was changed.
            MemoryDisabledError, DisabledError: memory is switched off.

        """
        self._work.refuse_disabled()
        pick = None if body.strategy is None else pick_of(body.strategy, self._strategies)
        options = CompactionOptions(**body.model_dump(exclude={"strategy"}), pick=pick)
        for _ in range(ROUNDS - 1):
            answer = await self._try(principal, session_id, options, key)
            if answer.why_not != "changed":
                return answer
        return await self._try(principal, session_id, options, key)

    async def _try(
        self,
        principal: Principal,
        session_id: str,
        options: CompactionOptions,
        key: IdempotencyKey | None,
    ) -> CompactAnswer:
        counter = self._compactor.counter_name
        async with self._work.read(principal, key) as db:
            seen = await self._compactor.look(db, principal, session_id, options)
        summariser, user_id = (
            chosen_summariser(self._summarisers, seen.config),
            seen.session.user_id,
        )
        if seen.eviction is None or options.dry_run:
            async with self._work.write(principal, key) as unit:
                why_not = CompactionResult(seen.why_not or "dry_run")
                answer = _answer(seen, why_not, None, summariser, counter)
                return unit.answer(answer, user_id=user_id)
        await self._refuse_used_up(principal, summariser)
        written = await self._compactor.write(principal, seen, options, summariser)
        async with self._work.write(principal, key) as unit:
            stored = CompactionResult("not_shorter")
            if written is not None:
                stored = await self._compactor.store(unit.db, principal, seen, written)
            answer = _answer(seen, stored, written, summariser, counter)
            if stored.why_not == "changed":
                return unit.answer_unkept(answer)
            return unit.answer(answer, user_id=user_id)

    async def _refuse_used_up(self, principal: Principal, summariser: Summariser) -> None:
        """Raises QuotaExhaustedError for a model, when the tenant's day is used up."""
        if summariser.model is None:
            return
        used_up = await self._compactor.used_up(principal)
        if used_up is not None:
            raise QuotaExhaustedError(used_up.until - self._now())

    async def list_summaries(
        self, principal: Principal, session_id: str, query: SummaryQuery
    ) -> Page[SummaryRead]:
        """Summaries of a session, newest first.

        Raises:
            SessionNotFoundError: the caller has no such session.
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_time(query.cursor, "summaries")
        async with self._work.read(principal) as db:
            session = await SessionRepository(db, principal.access).get(session_id)
            rows = await SummaryRepository(db, principal.access).list_summaries(
                session_id, level=query.level, start=start, limit=query.limit
            )
        return page(
            "summaries",
            rows,
            query.limit,
            show=lambda row: shown(row, session.summary_ids),
            place=lambda row: (row.create_time, row.summary_id),
            fits=lambda items: fitting(
                self._compactor.counter, (summary.content for summary in items), query.max_tokens
            ),
        )

    async def get(self, principal: Principal, session_id: str, summary_id: str) -> SummaryRead:
        """A summary of a session.

        Raises:
            SessionNotFoundError, SummaryNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            session = await SessionRepository(db, principal.access).get(session_id)
            row = await SummaryRepository(db, principal.access).get(session_id, summary_id)
            return shown(row, session.summary_ids)


def shown(row: SessionSummary, present: Sequence[str]) -> SummaryRead:
    """A summary, and whether it is in the context now (`present` has the ids that are)."""
    read = SummaryRead.model_validate(row)
    read.in_context = row.summary_id in present
    return read


def _pressure(pressure: Pressure, counter: str) -> PressureRead:
    return PressureRead(**pressure.shown(), counter=counter)


def _answer(
    seen: CompactionSnapshot,
    stored: CompactionResult,
    written: WrittenSummary | None,
    summariser: Summariser,
    counter: str,
) -> CompactAnswer:
    done = stored.why_not is None and written is not None
    summaries: list[SummaryRead] = []
    if stored.session is not None and written is not None:
        summaries = [shown(summary, stored.session.summary_ids) for summary in written.added]
    eviction = seen.eviction
    evicted = None
    if eviction is not None and (done or stored.why_not == "dry_run"):
        evicted = EvictedRead(
            messages=len(eviction.messages),
            tokens=eviction.tokens,
            from_seq=eviction.from_seq,
            to_seq=eviction.to_seq,
        )
    return CompactAnswer(
        session_id=seen.session.session_id,
        compacted=done,
        why_not=stored.why_not,
        evicted=evicted,
        more=eviction is not None and eviction.more,
        summary=summaries[0] if summaries else None,
        folded=summaries[1:],
        model=summariser.name,
        rescue_job_id=stored.rescue_job_id,
        snapshot_id=stored.snapshot_id,
        checkpoint_id=stored.checkpoint_id,
        pressure_before=_pressure(seen.pressure, counter),
        pressure_after=None if stored.pressure is None else _pressure(stored.pressure, counter),
    )
