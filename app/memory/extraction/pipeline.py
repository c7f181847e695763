"""One run, from what was said to what is remembered: read, judge, compare, decide, store.

Nothing waits for a model or an embedder while a transaction is open. What was decided among
some neighbours is stored only if they are still the same under the buckets' locks; otherwise
they are looked up and decided about again.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.agent_processors import Processing
from app.identity.agents.embedders import Embedders, embed
from app.identity.agents.repository import PolicyRepository
from app.identity.agents.retention import ForgettingPolicy
from app.language.llm.embedder import Embedder
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import Extraction
from app.language.llm.model_catalogue import ExtractionModel
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    ReconcileDecision,
    Reconciler,
    Reconciliation,
)
from app.language.text.injections import addresses_model
from app.language.text.names import name_key
from app.language.text.normal_forms import content_hash
from app.language.text.offload import read_text
from app.memory.extraction.agenda import AgendaRepository
from app.memory.extraction.applying import Storing
from app.memory.extraction.drafts import Buckets, Draft, Words, bar, by_place
from app.memory.extraction.graphing import Graphing
from app.memory.extraction.judging import judge
from app.memory.extraction.ledger import RunLog
from app.memory.extraction.neighbourhood import Near, Neighbourhood
from app.memory.extraction.planning import Agreement
from app.memory.extraction.processing import after_extract, before_extract, is_silent
from app.memory.extraction.reading import writable_project
from app.memory.extraction.relating import names_in
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.tending import Tending
from app.memory.extraction.upkeep import Shown, Upkeep, settle
from app.memory.extraction.waves import Company, meet
from app.memory.extraction.work import BarredError, MovedError, Ran, Work
from app.memory.memories.gate import Gate, Proposal
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.save_service import SaveRules
from app.platform.database.engine import Database
from app.platform.database.failures import DatabaseBusyError
from app.platform.observability.metrics import GATE_DECISIONS, MEMORY_EVENTS

log = structlog.get_logger()

ROUNDS = 3
"""How often a run decides anew when others keep changing its neighbours; the last time it
decides by rules, under the locks, so that it ends."""

Finish = Callable[[AsyncSession, Ran], Awaitable[None]]
"""What else belongs into the transaction that stores a run: watermark, job, answer."""


@dataclass(frozen=True, slots=True)
class PipelineRules:
    """What the deployment says about runs."""

    saving: SaveRules
    forgetting: ForgettingPolicy
    reconciler: Reconciler
    """The keyless one, for decisions that cannot wait for a model."""

    @property
    def gate(self) -> Gate:
        return self.saving.gate


class Pipeline:
    def __init__(
        self,
        database: Database,
        embedders: Embedders,
        log_of_runs: RunLog,
        rules: PipelineRules,
        processing: Processing,
    ) -> None:
        self._database = database
        self._embedders = embedders
        self._runs = log_of_runs
        self._rules = rules
        self._processing = processing

    async def run(self, work: Work, model: ExtractionModel, finish: Finish) -> Ran:
        """Read the work's turns and remember what they say; all of it is stored, or nothing.

        Safe to repeat: what is remembered already changes nothing.

        Raises:
            ModelUnavailableError, EmbeddingUnavailableError, DatabaseBusyError: nothing was
                stored; try again.
            ProcessorFailedError: as well; one of the agent's failed that may not.
            LeaseLostError, and whatever `finish` raises: nothing was stored.

        """
        chain = await self._processing.of_agent(work.principal, work.agent_id)
        left = await before_extract(chain, work)
        silenced, work = left is not work and is_silent(left), left
        extraction = Extraction(()) if silenced else await self._read(work, model)
        run_id = await self._runs.extracted(work, model.extractor, extraction)
        extraction = await after_extract(chain, work, extraction)
        drafts = await read_text(
            work.characters, judge, extraction.proposals, work.hearing, self._rules.gate
        )
        ran = Ran(run_id, model.extractor.name, drafts, extraction.malformed)
        embedder = await self._embedders.for_writing(work.principal, work.hearing.grounds.agent_id)
        names = [Words(name) for name in names_in(drafts)] if work.graph else []
        await _embed(embedder, [*(draft.own for draft in drafts if draft.open), *names])
        ran.names.update({name_key(one.text): one.vector for one in names})
        await self._settle(work, model, ran, embedder, finish)
        _count(ran)
        return ran

    async def _read(self, work: Work, model: ExtractionModel) -> Extraction:
        reading = model.extractor.summarise if work.summary else model.extractor.extract
        try:
            return await reading(work.request)
        except ModelUnavailableError as error:
            await self._runs.failed(work, model.extractor, error)
            raise

    async def _settle(
        self, work: Work, model: ExtractionModel, ran: Ran, embedder: Embedder, finish: Finish
    ) -> None:
        buckets, undecided, company = _undecided(ran, embedder)
        for turn in range(ROUNDS):
            last = turn == ROUNDS - 1
            decided: _Decided | None = None
            if not last:
                async with self._database.begin(work.principal.tenant_id) as db:
                    seen = await self._look(db, work, buckets, embedder)
                    shown = await _agenda(db, work, model, buckets)
                upkeep = await self._decide(work, model, company, seen, shown)
                await self._prepare(undecided, upkeep, embedder)
                decided = _Decided(seen, upkeep)
            try:
                await self._commit(work, ran, buckets, company, embedder, decided, finish)
            except MovedError as error:
                if last:
                    # Somebody deletes faster than this can look: nothing is stored, try again.
                    raise DatabaseBusyError from error
                allowed = work.hearing.grounds.scopes
                if isinstance(error, BarredError):
                    allowed = tuple(scope for scope in allowed if scope != "project")
                bar(undecided, allowed)
                buckets, undecided, company = _undecided(ran, embedder)
            else:
                return

    async def _look(
        self, db: AsyncSession, work: Work, buckets: Buckets, embedder: Embedder
    ) -> dict[int, Near]:
        """Neighbours of every open draft, by its index."""
        neighbourhood = self._neighbourhood(db, work, embedder)
        found: dict[int, Near] = {}
        for place, drafts in buckets.items():
            near = await neighbourhood.of(place, drafts)
            found |= {draft.index: one for draft, one in zip(drafts, near, strict=True)}
        return found

    def _neighbourhood(self, db: AsyncSession, work: Work, embedder: Embedder) -> Neighbourhood:
        return Neighbourhood(
            db, work.principal.access, embedder, self._rules.saving.threshold(embedder)
        )

    async def _decide(
        self,
        work: Work,
        model: ExtractionModel,
        company: Company,
        seen: dict[int, Near],
        shown: Shown | None,
    ) -> Upkeep:
        """Give every draft its event, by the reconciler where there is something to compare.

        The first time it is asked it is shown the agenda, too.
        """
        agreement = Agreement()
        drafts: list[Draft] = []
        first: Reconciliation | None = None
        agenda = NO_AGENDA if shown is None else shown.agenda
        for wave in company.waves():
            _compare(wave, seen, company)
            drafts += wave
            asked = [draft for draft in wave if draft.open and draft.neighbours]
            decisions: Sequence[ReconcileDecision] = ()
            if asked:
                answer = await self._ask(work, model, asked, NO_AGENDA if first else agenda)
                first = first or answer
                decisions = answer.decisions
            _agree(agreement, wave, asked, decisions)
        return settle(shown, first, agreement, drafts, self._rules.gate)

    async def _ask(
        self, work: Work, model: ExtractionModel, asked: Sequence[Draft], agenda: Agenda
    ) -> Reconciliation:
        try:
            answer = await model.reconciler.reconcile([one.question() for one in asked], agenda)
        except ModelUnavailableError as error:
            await self._runs.not_reconciled(work, model.reconciler, error)
            if not agenda or error.fault is None:
                raise
            # The endpoint answered and would answer so again: the old memories must not keep
            # the new statements out.
            return await self._ask(work, model, asked, NO_AGENDA)
        await self._runs.reconciled(work, model.reconciler, answer.use)
        return answer

    async def _prepare(self, drafts: Sequence[Draft], upkeep: Upkeep, embedder: Embedder) -> None:
        """Judge and embed the words that a reconciler brought; refused ones change nothing."""
        for draft in drafts:
            if draft.new is None:
                continue
            judged = self._rules.gate.redacted(Proposal(draft.new.text, draft.proposed.confidence))
            draft.new.text = judged.content
            if self._rules.gate.check(judged) or addresses_model(judged.content):
                draft.settle(ReconcileDecision("ADD", reason="the gate refused the reworded text"))
        reworded = [draft.new for draft in drafts if draft.new is not None]
        for words in reworded:
            words.content_hash = content_hash(words.text)
        await _embed(embedder, reworded + [merge.own for merge in upkeep.granted])

    async def _commit(
        self,
        work: Work,
        ran: Ran,
        buckets: Buckets,
        company: Company,
        embedder: Embedder,
        decided: "_Decided | None",
        finish: Finish,
    ) -> None:
        """Store it all, if nothing moved; what is not decided is, by rules, under the locks."""
        async with self._database.begin(work.principal.tenant_id) as db:
            await _hold(db, work, buckets)
            now = await self._look(db, work, buckets, embedder)
            drafts = [draft for wave in company.waves() for draft in wave]
            if decided is None:
                upkeep = Upkeep(await self._decide_now(company, now))
            elif any(now[index].seen != near.seen for index, near in decided.seen.items()):
                raise MovedError
            else:
                upkeep = decided.upkeep
            time = await MemoryRepository(db, work.principal.access).transaction_time()
            storing = Storing(
                db,
                work,
                run_id=ran.run_id,
                extractor=ran.extractor,
                model=embedder.name,
                now=time,
            )
            await storing.store(drafts)
            if upkeep.shown is not None:
                tending = Tending(db, work, storing, run_id=ran.run_id, now=time)
                ran.upkeep.update(upkeep.counted(await tending.store(upkeep, drafts)))
            await storing.trim(
                buckets,
                self._neighbourhood(db, work, embedder),
                policies=await PolicyRepository(db, work.principal.tenant_id).get(
                    self._rules.forgetting,
                    {place.agent_id for place in buckets if place.agent_id is not None},
                ),
                left=upkeep.left,
                spared={str(merge.memory_id) for merge in upkeep.granted},
            )
            graphing = Graphing(db, work, model=embedder.name, vectors=ran.names, now=time)
            ran.graph.clear()
            ran.graph.update(await graphing.write(drafts))
            await storing.decide(ran.drafts, ran.malformed, work.hearing.grounds.first)
            await self._runs.committed(db, work, ran)
            await finish(db, ran)

    async def _decide_now(self, company: Company, now: dict[int, Near]) -> int:
        """Decide by rules; how many memories the run may still end."""
        agreement = Agreement()
        for wave in company.waves():
            _compare(wave, now, company)
            asked = [draft for draft in wave if draft.open and draft.neighbours]
            answer = await self._rules.reconciler.reconcile([one.question() for one in asked])
            _agree(agreement, wave, asked, [_in_own_words(one) for one in answer.decisions])
        return agreement.allowance.left


@dataclass(frozen=True, slots=True)
class _Decided:
    """What was decided, and what it was decided among."""

    seen: dict[int, Near]
    upkeep: Upkeep


async def _agenda(
    db: AsyncSession, work: Work, model: ExtractionModel, buckets: Buckets
) -> Shown | None:
    """What a model may look at besides; None where none is there to look.

    A second attempt goes without: old memories must not keep a session from being read.
    """
    again = work.job is not None and work.job.attempts > 1
    if model.reconciler.model is None or again:
        return None
    return await AgendaRepository(db, work.principal.access).of(list(buckets))


def _undecided(ran: Ran, embedder: Embedder) -> tuple[Buckets, list[Draft], Company]:
    """What is open of a run, by where it would be stored and in order."""
    buckets = by_place(ran.drafts)
    drafts = [draft for draft in ran.drafts if draft.open]
    return buckets, drafts, Company(drafts, embedder.neighbour_floor)


async def _hold(db: AsyncSession, work: Work, buckets: Buckets) -> None:
    """Keep what was read where it is, and let nobody else write into the buckets.

    Raises:
        BarredError: the user has lost the role that let them write into the project.
        and what `work.hold` and `ExtractionRepository.hold` raise.

    """
    if work.hold is not None:
        await work.hold(db)
    access, user_id = work.principal.access, work.hearing.grounds.user_id
    held = ExtractionRepository(db, access)
    for place in buckets:
        if place.scope == "project" and user_id is not None:
            await held.hold_project(place.scope_id)
            if await writable_project(db, access, place.scope_id, user_id) is None:
                raise BarredError
    for place in buckets:
        await MemoryRepository(db, access).lock_bucket(place.scope, place.scope_id)
    await held.hold(None if work.span is None else work.span.session_id, user_id)


def _in_own_words(decision: ReconcileDecision) -> ReconcileDecision:
    """A decision that needs no further words, which would have to be embedded first."""
    if decision.event == "UPDATE":
        return replace(decision, event="SUPERSEDE", content=None)
    return (
        ReconcileDecision("ADD", reason=decision.reason) if decision.event == "MERGE" else decision
    )


def _compare(drafts: Sequence[Draft], seen: dict[int, Near], company: Company) -> None:
    """Take over the neighbours; what says exactly the same needs no decision."""
    for draft in drafts:
        near = seen[draft.index]
        draft.neighbours = meet(draft, near.neighbours, company)
        left = {one.memory_id for one in draft.neighbours}
        if near.same_text in left and not draft.proposed.retracts:
            draft.repeats(near.same_text, "it is remembered already")


def _agree(
    agreement: Agreement,
    drafts: Sequence[Draft],
    asked: Sequence[Draft],
    decisions: Sequence[ReconcileDecision],
) -> None:
    """Those that nobody was asked about are new, or retract nothing."""
    given = {draft.index: one for draft, one in zip(asked, decisions, strict=True)}
    still_open = [draft for draft in drafts if draft.open]
    agreement.settle(
        still_open,
        [
            given.get(
                draft.index,
                ReconcileDecision("NONE", reason="nothing remembered says so")
                if draft.proposed.retracts
                else ReconcileDecision("ADD"),
            )
            for draft in still_open
        ],
    )


async def _embed(embedder: Embedder, batch: Sequence[Words]) -> None:
    if batch:
        vectors = await embed(embedder, [words.text for words in batch])
        for words, vector in zip(batch, vectors, strict=True):
            words.vector = vector


def _count(ran: Ran) -> None:
    for draft in ran.drafts:
        MEMORY_EVENTS.labels(draft.event or "ADD").inc()
        for code in [reason.code for reason in draft.reasons] or ["accepted"]:
            GATE_DECISIONS.labels("duplicate" if draft.event == "NONE" else code).inc()
    for verdict, event in (("REMOVE", "ARCHIVE"), ("merged", "MERGE")):
        MEMORY_EVENTS.labels(event).inc(ran.upkeep.get(verdict, 0))
    log.info("extraction_run_committed", run_id=ran.run_id, extractor=ran.extractor, **ran.events)
