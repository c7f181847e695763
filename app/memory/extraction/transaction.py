"""Apply: one transaction that stores a run, or nothing of it.

First it holds what was read and locks the buckets; then it looks whether what was decided was
decided among what is there; then it writes memories, maintenance, graph, verdicts, the log of
runs, and whatever the caller's `finish` adds. Nothing in it waits for a model or an embedder.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.config import ForgettingPolicy, Policies
from app.identity.agents.repository import PolicyRepository
from app.identity.usage.repository import AnswerRepository
from app.language.llm.embedder import Embedder
from app.memory.extraction.draft_writer import DraftWriter
from app.memory.extraction.drafts import Draft
from app.memory.extraction.graph_writer import DraftGraphWriter
from app.memory.extraction.maintenance_writer import CapacityWriter, MaintenanceWriter
from app.memory.extraction.reconciliation import DraftReconciliation, RunPlan
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.run_policy import writable_project
from app.memory.extraction.run_state import (
    Finish,
    NeighboursMovedError,
    ProjectBarredError,
    RunResult,
    RunState,
    replaced,
)
from app.memory.extraction.snapshot_repository import SnapshotRepository
from app.memory.memories.repository import MemoryRepository
from app.platform.database.engine import Database
from app.platform.observability.metrics import EXTRACTION_RUNS

Thresholds = Callable[[Embedder], Callable[[str], float]]
"""From which similarity on two texts are one, by embedder and text."""


@dataclass(frozen=True, slots=True)
class RunTransaction:
    """Stores runs."""

    database: Database
    reconciliation: DraftReconciliation
    forgetting: ForgettingPolicy
    thresholds: Thresholds

    async def commit(self, state: RunState, plan: RunPlan | None, finish: Finish) -> RunResult:
        """Store it all, if nothing moved.

        Args:
            plan: what was decided; None to decide by rules, under the locks.
            finish: called last, with what came of the run.

        Raises:
            NeighboursMovedError: what was decided among has changed.
            ProjectBarredError: the user may not write into the project any more.
            LeaseLostError, and whatever `finish` and `hold` of the request raise.

        In each case nothing was stored.
        """
        async with self.database.begin(state.request.principal.tenant_id) as db:
            await _hold(db, state)
            look = SnapshotRepository(db, state, self.thresholds(state.embedder))
            neighbours = await look.neighbours()
            if plan is None:
                plan = await self.reconciliation.plan_by_rules(state, neighbours)
            elif plan.is_outdated(neighbours):
                raise NeighboursMovedError
            result = await self._write(db, state, plan)
            runs = ExtractionRepository(db, state.request.principal.access)
            await runs.finish_run(result.extraction_id, result.events, result.maintenance)
            if state.purpose is not None and state.request.ends_work:
                answers = AnswerRepository(db, state.request.principal.tenant_id)
                await answers.delete(state.purpose.name)
            EXTRACTION_RUNS.labels(state.request.trigger, "committed").inc()
            await finish(db, result)
        return result

    async def _write(self, db: AsyncSession, state: RunState, plan: RunPlan) -> RunResult:
        access = state.request.principal.access
        now = await MemoryRepository(db, access).transaction_time()
        writer = DraftWriter(db, state, now)
        drafts = await writer.store(plan.drafts)
        maintenance = await MaintenanceWriter(db, state, writer, now).store(
            plan.maintenance, drafts
        )
        drafts = await CapacityWriter(db, state.request).trim(
            drafts,
            policies=await self._policies(db, state, drafts),
            left=plan.maintenance.left,
            spared={str(merge.memory_id) for merge in maintenance.plan.granted},
        )
        graph = await DraftGraphWriter(db, state, now).write(drafts)
        return RunResult(
            state.extraction_id,
            state.model.extractor.name,
            await writer.record_verdicts(
                replaced(state.drafts, drafts), state.extraction.malformed
            ),
            state.extraction.malformed,
            maintenance.counts,
            graph,
            state.request.cut,
            state.extraction.experienced,
            state.extraction.taught,
            state.fault,
        )

    async def _policies(
        self, db: AsyncSession, state: RunState, drafts: Sequence[Draft]
    ) -> Policies:
        """What the agents of the run's buckets say of their cap."""
        agents = {draft.owner.agent_id for draft in drafts} - {None}
        return await PolicyRepository(db, state.request.principal.tenant_id).get(
            self.forgetting, {str(agent_id) for agent_id in agents}
        )


async def _hold(db: AsyncSession, state: RunState) -> None:
    """Keep what was read where it is, and let nobody else write into the buckets.

    Raises:
        ProjectBarredError: the user has lost the role that let them write into the project.
        and what `request.hold` and `ExtractionRepository.hold` raise.

    """
    request, buckets = state.request, state.buckets
    if request.hold is not None:
        await request.hold(db)
    access, user_id = request.principal.access, request.context.scopes.user_id
    held = ExtractionRepository(db, access)
    for owner in buckets:
        if owner.scope == "project" and user_id is not None:
            await held.hold_project(owner.scope_id)
            if await writable_project(db, access, owner.scope_id, user_id) is None:
                raise ProjectBarredError
    for owner in buckets:
        await MemoryRepository(db, access).lock_bucket(owner.scope, owner.scope_id)
    await held.hold(None if request.span is None else request.span.session_id, user_id)
