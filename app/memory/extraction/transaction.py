"""Apply: one transaction that stores a run, or nothing of it, and what it writes into the graph of
what the run says of whom.

First it holds what was read and locks the buckets; then it looks whether what was decided was
decided among what is there; then it writes memories, maintenance, graph, verdicts, the log of runs,
and whatever the caller's `finish` adds. Nothing in it waits for a model or an embedder.

The caller holds the buckets' locks. What a memory that ended had to say ends with it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.config import ForgettingPolicy, Policies
from app.identity.agents.repository import PolicyRepository
from app.identity.usage.repository import AnswerRepository
from app.language.llm.embedder import Embedder
from app.language.text.names import name_key
from app.memory.extraction.draft_writer import DraftWriter
from app.memory.extraction.drafts import Draft
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
from app.memory.graph.memory_reader import note_mentions
from app.memory.graph.owner_repository import SpeakerRepository
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import (
    SPEAKERS,
    GraphOwner,
    RelationStatement,
    Speaker,
    fits,
    graph_owner,
    triples_of,
)
from app.memory.graph.writer import GraphWriter
from app.memory.memories.repository import MemoryRepository
from app.platform.database.engine import Database
from app.platform.observability.metrics import EXTRACTION_RUNS

KEPT: Final = frozenset({"ADD", "UPDATE", "SUPERSEDE", "MERGE", "NONE"})
"""Events after which a memory says what the draft said."""

ENDING: Final = frozenset({"SUPERSEDE", "DELETE"})
"""Events whose targets hold no longer."""

ENDED: Final = "the memory that said so has ended"


class DraftGraphWriter:
    """Writes the relations of one run's drafts. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, state: RunState, now: datetime) -> None:
        """Prepare for the names whose vectors `state` has."""
        request = state.request
        access = request.principal.access
        self._request = request
        self._speakers = SpeakerRepository(db, access)
        self._entities = EntityRepository(db, access)
        self._graph = GraphWriter(
            db,
            access,
            actor=request.principal.key_id or None,
            job_id=request.job_id,
            now=now,
            embedding_model=state.embedder.name,
            vectors=state.name_vectors,
        )

    async def write(self, drafts: Sequence[Draft]) -> dict[str, int]:
        """Store the relations of what was kept, note whom it mentions, and close what ended.

        Called when every draft has its end. Returns counts for the job's result.
        """
        counts: dict[str, int] = defaultdict(int)
        if self._request.graph:
            said = "\n".join(name_key(turn.content) for turn in self._request.context.turns)
            for owner, own in _by_owner(drafts).items():
                for name, count in (await self._of_owner(owner, own, said)).items():
                    counts[name] += count
        ended = _ended(drafts)
        if ended:
            counts["closed"] += await self._graph.close_of(ended, ENDED)
        return {name: count for name, count in counts.items() if count}

    async def _of_owner(
        self, owner: GraphOwner, drafts: Sequence[Draft], said: str
    ) -> dict[str, int]:
        counts: dict[str, int] = {}
        if any(draft.proposed.relations for draft in drafts):
            speaker = await self._speaker(owner)
            statements: list[RelationStatement] = []
            for draft in drafts:
                statements += statements_of(draft, speaker, said)
            if statements:
                written = await self._graph.store(owner, statements)
                if speaker is not None:
                    await self._speakers.remember(owner, speaker)
                counts = {
                    "entities": written.entities_created,
                    "relations": written.relations_added,
                    "closed": written.relations_closed,
                }
        await self._mention(owner, drafts)
        return counts

    async def _speaker(self, owner: GraphOwner) -> Speaker | None:
        user_id = self._request.context.scopes.user_id
        if user_id is None or owner.scope == "agent":
            return None
        return await self._speakers.ensure(owner, user_id)

    async def _mention(self, owner: GraphOwner, drafts: Sequence[Draft]) -> None:
        """Note of every memory that was kept which entities of its bucket it names."""
        await note_mentions(
            self._entities,
            owner,
            [
                (draft.memory_id, draft.content.text)
                for draft in drafts
                if draft.memory_id is not None and not draft.proposed.retracts
            ],
        )


def _by_owner(drafts: Sequence[Draft]) -> dict[GraphOwner, list[Draft]]:
    found: dict[GraphOwner, list[Draft]] = {}
    for draft in drafts:
        owner = graph_owner(draft.owner)
        retracted = draft.event == "DELETE" and draft.proposed.retracts
        if owner is not None and (retracted or (draft.event in KEPT and draft.memory_id)):
            found.setdefault(owner, []).append(draft)
    return found


def _ended(drafts: Sequence[Draft]) -> list[str]:
    """Memories that hold no longer. Those merged into others hold in other words."""
    ended = [
        memory_id
        for draft in drafts
        if draft.event in ENDING
        for memory_id in draft.target_ids
        if draft.event == "DELETE" or memory_id != draft.memory_id
    ]
    return list(dict.fromkeys(ended))


def names_in(drafts: Sequence[Draft]) -> list[str]:
    """Names of a run that are not the user's, by which what is near may be found, each once."""
    found: dict[str, str] = {}
    for draft in drafts:
        if draft.open and draft.owner.scope != "session":
            for relation in draft.proposed.relations:
                for name in (relation.source, relation.destination):
                    if fits(name) and name_key(name) not in SPEAKERS:
                        found.setdefault(name_key(name), name)
    return list(found.values())


def statements_of(draft: Draft, speaker: Speaker | None, said: str) -> list[RelationStatement]:
    """The triples of a stored draft, in order; none whose names nobody said.

    Args:
        speaker: who "user" is; None where nobody in particular spoke.
        said: everything that was read, in normal form.

    """
    proposed = draft.proposed
    memory_ids = () if draft.memory_id is None or proposed.retracts else (draft.memory_id,)
    said = f"{said} {name_key(proposed.content)}"
    return triples_of(proposed, speaker, said, evidence=draft.evidence, memory_ids=memory_ids)


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
