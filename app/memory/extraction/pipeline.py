"""One run, from what was said to what is remembered, as the list of its stages.

    filter -> look up what is known -> extract -> filter -> evidence and gate -> embed
           -> (find neighbours -> reconcile -> apply), up to three times -> follow up

Each stage takes the run's state and returns the next one; only apply stores. Nothing waits for a
model or an embedder while a transaction is open. What was decided among some neighbours is
stored only if they are still the same under the buckets' locks; otherwise that round is
forgotten, and they are looked up and decided about again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from app.identity.agents.config import ForgettingPolicy, Processing
from app.identity.agents.embedders import Embedders
from app.identity.usage.repository import AnswerRepository
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import Malformed
from app.language.llm.model_catalogue import ExtractionModel
from app.language.llm.reconciler import Reconciler
from app.language.text.names import name_key
from app.language.text.offload import read_text
from app.memory.extraction.drafts import Draft, EmbeddedText, embedded
from app.memory.extraction.evidence import judge
from app.memory.extraction.known_memories import KnownMemories
from app.memory.extraction.known_repository import AgendaRepository
from app.memory.extraction.model_calls import RECONCILE, ModelCalls
from app.memory.extraction.processors import ProcessorFilter
from app.memory.extraction.reconciliation import DraftReconciliation, RunPlan
from app.memory.extraction.run_state import (
    Finish,
    NeighboursMovedError,
    ProjectBarredError,
    RunRequest,
    RunResult,
    RunState,
    replaced,
)
from app.memory.extraction.snapshot_repository import RunSnapshot, SnapshotRepository
from app.memory.extraction.transaction import RunTransaction, names_in
from app.memory.memories.save_service import SaveRules
from app.platform.database.engine import Database
from app.platform.database.failures import DatabaseBusyError
from app.platform.observability.metrics import GATE_DECISIONS, MEMORY_EVENTS

log = structlog.get_logger()

ROUNDS = 3
"""How often a run decides anew when others keep changing its neighbours; the last time it
decides by rules, under the locks, so that it ends."""


@dataclass(frozen=True, slots=True)
class PipelineRules:
    """What the deployment says about runs."""

    saving: SaveRules
    forgetting: ForgettingPolicy
    reconciler: Reconciler
    """The keyless one, for decisions that cannot wait for a model."""


class Pipeline:
    """Carries out runs; shared by the whole process."""

    def __init__(
        self,
        database: Database,
        embedders: Embedders,
        rules: PipelineRules,
        processing: Processing,
    ) -> None:
        self._database = database
        self._embedders = embedders
        self._rules = rules
        gate = rules.saving.gate
        self._filter = ProcessorFilter(processing)
        self._known = KnownMemories(database, embedders)
        self._calls = ModelCalls(database)
        self._reconciliation = DraftReconciliation(self._calls, gate, rules.reconciler)
        self._transaction = RunTransaction(
            database, self._reconciliation, rules.forgetting, rules.saving.threshold
        )

    async def run(self, request: RunRequest, model: ExtractionModel, finish: Finish) -> RunResult:
        """Read the request's turns and remember what they say; all of it is stored, or nothing.

        Safe to repeat: what is remembered already changes nothing.

        Args:
            finish: called last in the transaction that stores the run.

        Raises:
            ModelUnavailableError, EmbeddingUnavailableError, DatabaseBusyError: nothing was
                stored; try again.
            ProcessorFailedError: as well; one of the agent's failed that may not.
            LeaseLostError, and whatever `finish` raises: nothing was stored.

        """
        result = await self._apply(await self._read(request, model), finish)
        _follow_up(result)
        return result

    async def preview(
        self, request: RunRequest, model: ExtractionModel
    ) -> tuple[tuple[Draft, ...], Sequence[Malformed]]:
        """What `run` would make of each proposal now, and the entries that are none.

        Stores nothing but what model calls cost.

        Raises:
            What `run` raises before it stores.

        """
        state = await self._read(request, model)
        async with self._database.begin(request.principal.tenant_id) as db:
            look = SnapshotRepository(db, state, self._rules.saving.threshold(state.embedder))
            snapshot = RunSnapshot(await look.neighbours(), None)
        plan = await self._reconciliation.plan(state, snapshot)
        return replaced(state.drafts, plan.drafts), state.extraction.malformed

    async def _read(self, request: RunRequest, model: ExtractionModel) -> RunState:
        """Everything before the first look at what is remembered."""
        state = RunState(request, model)
        state = await self._filter.turns(state)
        state = await self._known.add(state)
        state = await self._calls.extract(state)
        state = await self._filter.proposals(state)
        state = await self._judge(state)
        return await self._embed(state)

    async def _judge(self, state: RunState) -> RunState:
        """With one draft per proposal; those that broke a rule are rejected."""
        drafts = await read_text(
            state.request.characters,
            judge,
            state.extraction.proposals,
            state.request.context,
            self._rules.saving.gate,
        )
        return replace(state, drafts=drafts)

    async def _embed(self, state: RunState) -> RunState:
        """With vectors of what is still open, and of the names in its relations."""
        request, open_drafts = state.request, state.open_drafts
        embedder = await self._embedders.for_writing(
            request.principal, request.context.scopes.agent_id
        )
        names = [EmbeddedText(name) for name in names_in(open_drafts)] if request.graph else []
        texts = await embedded(embedder, [*(draft.own for draft in open_drafts), *names])
        drafts = [replace(draft, own=text) for draft, text in zip(open_drafts, texts, strict=False)]
        return replace(
            state,
            chosen_embedder=embedder,
            drafts=replaced(state.drafts, drafts),
            name_vectors={name_key(name.text): name.vector for name in texts[len(open_drafts) :]},
        )

    async def _apply(self, state: RunState, finish: Finish) -> RunResult:
        """Find neighbours, reconcile and store, until nothing moves in between.

        Raises:
            DatabaseBusyError: somebody changes neighbours faster than this can look.
            and what `_decide` raises.

        """
        plan: RunPlan | None = None
        for _ in range(ROUNDS - 1):
            state, plan = await self._decide(state, plan)
            try:
                return await self._transaction.commit(state, plan, finish)
            except ProjectBarredError:
                state, plan = state.without("project"), None
            except NeighboursMovedError:
                continue
        try:
            return await self._transaction.commit(state, None, finish)
        except NeighboursMovedError as error:
            raise DatabaseBusyError from error

    async def _decide(
        self, state: RunState, before: RunPlan | None
    ) -> tuple[RunState, RunPlan | None]:
        """The plan of the run; None where rules are to decide under the locks.

        That is so from a job's second attempt on, when the model answers and its decisions cannot
        be used: it would answer so again, and what was said must not be lost.

        Raises:
            ModelUnavailableError, EmbeddingUnavailableError: nothing was decided; try again.

        """
        if state.fault is not None:
            return state, None
        try:
            look = await self._look(state)
            return state, await self._reconciliation.plan(state, look, before)
        except ModelUnavailableError as error:
            job = state.request.job
            if not error.would_repeat or job is None or job.attempts <= 1:
                raise
            fault = error.fault or "too_long"
            log.warning("run_decided_by_rules", fault=fault, job_id=job.job_id)
            return replace(state, fault=fault), None

    async def _look(self, state: RunState) -> RunSnapshot:
        """What the run is decided among, with old memories where a model is there to look.

        A second attempt goes without those: they must not keep a session from being read. But one
        for which the model has decided before is shown them again, as it was the same question.
        """
        job, purpose = state.request.job, state.purpose
        tenant_id = state.request.principal.tenant_id
        async with self._database.begin(tenant_id) as db:
            reviews = state.model.reconciler.model is not None and (
                job is None
                or job.attempts <= 1
                or (
                    purpose is not None
                    and await AnswerRepository(db, tenant_id).has(purpose.name, RECONCILE)
                )
            )
            threshold = self._rules.saving.threshold(state.embedder)
            look = SnapshotRepository(db, state, threshold)
            agenda = await AgendaRepository(db, state).agenda() if reviews else None
            return RunSnapshot(await look.neighbours(), agenda)


def _follow_up(result: RunResult) -> None:
    """Count what became of the proposals, once it is stored."""
    for draft in result.drafts:
        MEMORY_EVENTS.labels(draft.event or "ADD").inc()
        for code in [reason.code for reason in draft.reasons] or ["accepted"]:
            GATE_DECISIONS.labels("duplicate" if draft.event == "NONE" else code).inc()
    for verdict, event in (("REMOVE", "ARCHIVE"), ("merged", "MERGE")):
        MEMORY_EVENTS.labels(event).inc(result.maintenance.get(verdict, 0))
    log.info(
        "extraction_run_committed",
        extraction_id=result.extraction_id,
        extractor=result.extractor,
        **result.events,
    )
