"""The handler of jobs `compact`: what an append orders when the window is full."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from app.conversation.sessions.jobs import compact_soon
from app.errors import DisabledError
from app.identity.tenants.access import Principal
from app.language.llm.errors import UnknownModelError
from app.language.llm.model_catalogue import SummariserCatalogue
from app.language.llm.summariser import Summariser
from app.memory.extraction.run_policy import DISABLED, SWITCHED_OFF, principal_of
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.platform.work.unit import Work
from app.prompting.compaction.compactor import (
    CompactionResult,
    CompactionSnapshot,
    Compactor,
)
from app.prompting.compaction.eviction import CompactionOptions
from app.prompting.compaction.summary_writer import WrittenSummary, chosen_summariser

REASON = "pressure"


class CompactionJobs:
    """Runs the compactions that appends have ordered."""

    def __init__(
        self,
        work: Work,
        compactor: Compactor,
        summarisers: SummariserCatalogue,
        now: Callable[[], datetime],
    ) -> None:
        self._work = work
        self._compactor = compactor
        self._summarisers = summarisers
        self._now = now

    async def compact(self, job: ClaimedJob) -> None:
        """Compact the session if its window is still full, and finish the job.

        When a model fails nothing is changed, and the job is tried again; at the last attempt
        the keyless summariser replaces it, and the summary carries its name.

        Raises:
            SessionNotFoundError: it was deleted meanwhile.
            DeferJobError: the day's quota is used up, or memory, tenant, agent or user is disabled.
            ModelUnavailableError: nothing was changed; try again.
            LeaseLostError: a different worker has done it.

        """
        if not self._work.enabled:
            raise DeferJobError(self._now() + SWITCHED_OFF, "memory_disabled")
        options = CompactionOptions(reason=REASON)
        async with self._work.write(job, while_disabled=True) as unit:
            principal = await principal_of(unit.db, job)
            try:
                seen = await self._compactor.look(unit.db, principal, job.session_id or "", options)
            except DisabledError as error:
                raise DeferJobError(self._now() + DISABLED, "disabled") from error
            if seen.eviction is None:
                await JobRepository(unit.db, job.tenant_id).finish(job, {"skipped": seen.why_not})
                return
        summariser = await self._summariser(job, principal, seen)
        written = await self._compactor.write(principal, seen, options, summariser)
        async with self._work.write(job, while_disabled=True) as unit:
            jobs = JobRepository(unit.db, job.tenant_id)
            if written is None:
                await jobs.finish(job, {"skipped": "not_shorter"})
                return
            stored = await self._compactor.store(unit.db, principal, seen, written)
            if stored.why_not == "changed" or (stored.why_not is None and seen.eviction.more):
                # Once more: with the present messages, or those that did not fit into a summary.
                await jobs.schedule(compact_soon(seen.session, creator=job.creator))
            await jobs.finish(job, _result(seen, written, stored))

    async def _summariser(
        self, job: ClaimedJob, principal: Principal, seen: CompactionSnapshot
    ) -> Summariser:
        """Raises DeferJobError when a model may not be asked today."""
        try:
            summariser = chosen_summariser(self._summarisers, seen.config)
        except UnknownModelError:
            return self._summarisers.keyless
        if summariser.model is None or job.attempts >= job.max_attempts:
            return self._summarisers.keyless
        used_up = await self._compactor.used_up(principal)
        if used_up is not None:
            raise DeferJobError(used_up.until, used_up.reason)
        return summariser


def _result(
    seen: CompactionSnapshot, written: WrittenSummary, stored: CompactionResult
) -> dict[str, Any]:
    """The result in the job's row: ids and counts, no content."""
    if stored.why_not is not None:
        return {"skipped": stored.why_not}
    assert seen.eviction is not None  # noqa: S101 (something was stored)
    return {
        "summary_ids": [summary.summary_id for summary in written.added],
        "model": written.added[0].model,
        "from_seq": seen.eviction.from_seq,
        "to_seq": seen.eviction.to_seq,
        "evicted_messages": len(seen.eviction.messages),
        "evicted_tokens": seen.eviction.tokens,
        "rescue_job_id": stored.rescue_job_id,
        "checkpoint_id": stored.checkpoint_id,
    }
