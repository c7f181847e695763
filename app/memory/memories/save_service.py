"""Saving as given (`infer=false`): gate, duplicates, one transaction with its history.

The order is: the gate alone, then the vectors, then the transaction that looks for
duplicates under the bucket's lock and writes. So nothing waits for a model while it holds
a lock, and two saves of one text end as one memory.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.agent_processors import Processing
from app.identity.agents.embedders import Embedders, embed
from app.identity.tenants.access import Principal
from app.identity.tenants.repository import TenantRepository
from app.language.llm.embedder import Embedder
from app.language.llm.errors import EmbeddingUnavailableError
from app.language.text.offload import read_text
from app.memory.memories.candidates import SaveCandidate, candidates, characters
from app.memory.memories.duplicates import EXPIRED, DuplicateCheck
from app.memory.memories.errors import (
    DuplicateMemoryError,
    GateRejectedError,
    InvalidValidityError,
)
from app.memory.memories.gate import Gate, verdict_row
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner, ensure_owner, requested_owner
from app.memory.memories.processors import before_store
from app.memory.memories.record_repository import MemoryChange, RecordRepository, rewrite, snapshot
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.schemas import (
    MemoryAdded,
    MemoryCreate,
    MemoryRead,
    MemoryValidated,
    Outcome,
    Reason,
)
from app.platform.database.engine import clock_of
from app.platform.observability.metrics import GATE_DECISIONS, MEMORY_EVENTS
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

Also = Callable[[AsyncSession, Sequence[Outcome]], Awaitable[None]]
"""What belongs into the transaction that saves, besides what is saved."""


@dataclass(frozen=True, slots=True)
class SaveRules:
    """What the deployment says about saving."""

    gate: Gate
    auto_create: bool
    duplicate_threshold: float | None

    def threshold(self, embedder: Embedder) -> Callable[[str], float]:
        """The similarity from which a text may be a duplicate: the setting, else the
        embedder's own, which depends on the script.
        """
        override = self.duplicate_threshold
        if override is None:
            return embedder.duplicate_threshold.for_text
        return lambda _text: override


class SaveService:
    def __init__(
        self,
        work: Work,
        embedders: Embedders,
        rules: SaveRules,
        processing: Processing,
    ) -> None:
        self._work = work
        self._embedders = embedders
        self._rules = rules
        self._processing = processing

    async def add(
        self, principal: Principal, body: MemoryCreate, *, key: IdempotencyKey | None = None
    ) -> tuple[MemoryAdded, int]:
        """Remember a text, a message, or up to 100 messages, each as it stands.

        The same text again, but for case and white space, changes nothing and returns what
        is there. A list is answered with one outcome each; a single statement that is
        refused raises.

        Returns:
            The outcomes, and the HTTP status that fits them.

        Raises:
            GateRejectedError: refused, and nothing stored but the verdict.
            DuplicateMemoryError: as above, and nearness to a memory is the only reason.
            EmbeddingUnavailableError, ProcessorFailedError: nothing was stored; safe to retry.
            MemoryDisabledError, MemoryPausedError, DisabledError: memory is switched off.
            UserRequiredError, ScopeRequiresError, InsufficientScopeError: of the place.

        """
        self._work.refuse_disabled()
        place = requested_owner(principal, body)
        body = await self._processed(principal, body, place)
        batch = await read_text(characters(body), candidates, body, self._rules.gate)
        try:
            embedder = await self._embedders.for_writing(principal, place.agent_id)
            await _embed(embedder, batch)
        except EmbeddingUnavailableError:
            # What was answered before needs no vector now.
            await self._work.refuse_repeated(principal, key)
            raise
        single = not isinstance(body.messages, list)
        async with self._work.write(principal, key) as unit:
            results = await self._store(unit.db, principal, body, place, batch, embedder)
            added = MemoryAdded(results=results)
            status = 201 if single and results[0].event in {"ADD", "SUPERSEDE"} else 200
            if single and results[0].event == "REJECT":
                # Raised below, once its verdict is stored.
                unit.answer_unkept(added)
            else:
                unit.answer(added, status, user_id=place.user_id)
        _count(batch)
        if single:
            _raise_refusal(batch[0], results[0])
        return added, status

    async def add_each(
        self,
        principal: Principal,
        bodies: Sequence[MemoryCreate],
        also: Also,
        *,
        dry_run: bool = False,
    ) -> None:
        """Remember several single statements, each as its body says, in one transaction.

        A refused one is an outcome like the others.

        Args:
            also: what else belongs into the transaction; it gets an outcome for each body.
            dry_run: store nothing; the outcomes are those that are to be expected.

        Raises:
            as `add`, but for refusals.

        """
        self._work.refuse_disabled()
        embedder = await self._embedders.for_writing(
            principal, bodies[0].agent_id if bodies else None
        )
        bodies = [
            await self._processed(principal, body, requested_owner(principal, body))
            for body in bodies
        ]
        batches = [
            await read_text(characters(body), candidates, body, self._rules.gate) for body in bodies
        ]
        await _embed(embedder, [one for batch in batches for one in batch])
        outcomes: list[Outcome] = []
        async with self._work.write(principal) as unit:
            for body, batch in zip(bodies, batches, strict=True):
                place = requested_owner(principal, body)
                if dry_run:
                    await check_owner(unit.db, principal, place, create=self._rules.auto_create)
                    await self._duplicates(unit.db, principal, body, embedder).look(
                        asdict(place), batch
                    )
                    outcomes.append(_outcome(batch[0], None, None))
                else:
                    outcomes += await self._store(unit.db, principal, body, place, batch, embedder)
            await also(unit.db, outcomes)
        if not dry_run:
            _count([one for batch in batches for one in batch])

    async def validate(self, principal: Principal, body: MemoryCreate) -> MemoryValidated:
        """What `add` would do; nothing is stored, not even a verdict.

        Raises:
            as `add`, but for refusals of the gate, which are told.

        """
        self._work.refuse_disabled()
        place = requested_owner(principal, body)
        body = await self._processed(principal, body, place)
        batch = await read_text(characters(body), candidates, body, self._rules.gate)
        embedder = await self._embedders.for_writing(principal, place.agent_id)
        await _embed(embedder, batch)
        async with self._work.read(principal) as db:
            if any(one.event is None for one in batch):
                await check_owner(db, principal, place, create=self._rules.auto_create)
            await self._duplicates(db, principal, body, embedder).look(asdict(place), batch)
        return MemoryValidated(
            valid=all(one.event != "REJECT" for one in batch),
            results=[_outcome(one, None, None) for one in batch],
        )

    async def _processed(
        self, principal: Principal, body: MemoryCreate, place: MemoryOwner
    ) -> MemoryCreate:
        chain = await self._processing.of_agent(principal, place.agent_id)
        return await before_store(chain, principal, body, place)

    def _duplicates(
        self, db: AsyncSession, principal: Principal, body: MemoryCreate, embedder: Embedder
    ) -> DuplicateCheck:
        return DuplicateCheck(
            MemoryRepository(db, principal.access),
            body.on_duplicate,
            embedder.name,
            self._rules.threshold(embedder),
        )

    async def _store(
        self,
        db: AsyncSession,
        principal: Principal,
        body: MemoryCreate,
        place: MemoryOwner,
        batch: list[SaveCandidate],
        embedder: Embedder,
    ) -> list[Outcome]:
        memories = MemoryRepository(db, principal.access)
        records = RecordRepository(db, principal.access)
        # From here on nobody else decides about this bucket.
        await memories.lock_bucket(place.scope, place.scope_id)
        if any(one.event is None for one in batch):
            # What is known already is answered only where it could also be saved.
            await ensure_owner(db, principal, place, create=self._rules.auto_create)
        duplicates = self._duplicates(db, principal, body, embedder)
        shown = {
            memory_id: MemoryRead.model_validate(row)
            for memory_id, row in (await duplicates.decide(asdict(place), batch)).items()
        }
        await records.note(duplicates.archived, actor=principal.key_id, reason=EXPIRED)
        fresh = [one for one in batch if one.event in {"ADD", "SUPERSEDE"}]
        if fresh:
            await TenantRepository(db, principal.tenant_id).note_model(embedder.name)
            rows = [_row(one, body, place, embedder.name, principal) for one in fresh]
            replacing = [
                (one, row) for one, row in zip(fresh, rows, strict=True) if one.event == "SUPERSEDE"
            ]
            if replacing:
                begin = await successor_begins(memories, body.valid_from, body.valid_to)
                for _, row in replacing:
                    row["valid_from"] = begin
            added = await memories.add_all(rows)
            changes = [MemoryChange("ADD", None, snapshot(row)) for row in added]
            shown |= {row.memory_id: MemoryRead.model_validate(row) for row in added}
            for one, row in replacing:
                changes += await _replace(db, memories, one, row["valid_from"])
            await records.note(changes, actor=principal.key_id)
        verdicts = {
            one.index: _verdict(one, body, place, principal) for one in batch if one.event != "SKIP"
        }
        if verdicts:
            await records.decide(list(verdicts.values()))
        decisions = {index: row["decision_id"] for index, row in verdicts.items()}
        return [
            _outcome(one, shown.get(one.memory_id or ""), decisions.get(one.index)) for one in batch
        ]


async def check_owner(
    db: AsyncSession, principal: Principal, place: MemoryOwner, *, create: bool
) -> None:
    """As `ensure_owner`, and nothing of it stays: whoever would be made is not there afterwards.

    Raises:
        what `ensure_owner` raises.

    """
    trial = await db.begin_nested()
    try:
        await ensure_owner(db, principal, place, create=create)
    finally:
        await trial.rollback()


async def successor_begins(
    memories: MemoryRepository, valid_from: datetime | None, valid_to: datetime | None
) -> datetime:
    """Since when a statement holds that replaces another: as given, else from now on.

    By the clock of the database, so that it counts for whoever asks next.

    Raises:
        InvalidValidityError: it would end before it begins.

    """
    begin = valid_from or await memories.transaction_time()
    if valid_to is not None and valid_to <= begin:
        raise InvalidValidityError
    return begin


async def cut_short(
    db: AsyncSession, memories: MemoryRepository, old: Memory, at: datetime
) -> list[MemoryChange]:
    """End at `at` what `old` had replaced, when its own successor holds longer than it did.

    Without it, an early link of a chain and the last one would both hold between the two.
    """
    if old.valid_from is None or old.valid_from <= at:
        return []
    rows = await memories.lock_predecessors(old.memory_id, at)
    changes = [await rewrite(db, row, {"valid_to": at}, "UPDATE") for row in rows]
    return [change for change in changes if change is not None]


async def superseded(
    db: AsyncSession, old: Memory, new_memory_id: str, at: datetime
) -> MemoryChange:
    """End a locked memory in favour of a newer one; it keeps its text.

    The old one holds until `at`, and the new one, whose `valid_from` it is, from then on: of
    the two exactly one holds at any moment; `cut_short` sees to those before them. While `at`
    lies ahead the old one stays active, and ends by itself.
    """
    before = snapshot(old)
    old.status = "superseded" if at <= await clock_of(db) else "active"
    old.superseded_by = new_memory_id
    old.valid_to = min(old.valid_to or at, at)
    old.version += 1
    await db.flush()
    await db.refresh(old)
    return MemoryChange("SUPERSEDE", before, snapshot(old))


async def _replace(
    db: AsyncSession, memories: MemoryRepository, one: SaveCandidate, at: datetime
) -> list[MemoryChange]:
    """End what a stored candidate replaces, and tell it what that said."""
    old = await memories.get(one.duplicate_of or "", lock=True)
    one.previous = old.content
    return [
        *await cut_short(db, memories, old, at),
        await superseded(db, old, one.memory_id or "", at),
    ]


async def _embed(embedder: Embedder, batch: list[SaveCandidate]) -> None:
    open_ones = [one for one in batch if one.event is None]
    if open_ones:
        vectors = await embed(embedder, [one.content for one in open_ones])
        for one, vector in zip(open_ones, vectors, strict=True):
            one.vector = vector


def _row(
    one: SaveCandidate, body: MemoryCreate, place: MemoryOwner, model: str, principal: Principal
) -> dict[str, Any]:
    given = body.model_dump(
        include={
            "memory_type", "attribute", "tier", "confidence", "source", "source_id", "evidence",
            "visibility", "external_id", "valid_from", "valid_to", "expires_at",
        }
    )  # fmt: skip
    return (
        given
        | asdict(place)
        | {
            "tenant_id": principal.tenant_id,
            "memory_id": one.memory_id,
            "content": one.content,
            "content_hash": one.content_hash,
            "source_error": one.source_error,
            "metadata_": one.metadata,
            "embedding": one.vector,
            "embedding_model": model,
            "creator": principal.key_id,
        }
    )


def _verdict(
    one: SaveCandidate, body: MemoryCreate, place: MemoryOwner, principal: Principal
) -> dict[str, Any]:
    return verdict_row(
        principal,
        place=asdict(place),
        content=one.content,
        source=body.source,
        accepted=one.event in {"ADD", "SUPERSEDE"},
        reasons=one.reasons,
        memory_id=one.memory_id or one.duplicate_of,
        event=one.event,
        evidence=body.evidence,
    )


def _outcome(one: SaveCandidate, memory: MemoryRead | None, decision_id: str | None) -> Outcome:
    return Outcome(
        index=one.index,
        event=one.event or "ADD",
        memory_id=one.memory_id,
        memory=memory,
        previous=one.previous,
        similarity=one.similarity,
        reasons=[
            Reason(code=reason.code, detail=reason.detail, figures=dict(reason.figures))
            for reason in one.reasons
        ],
        decision_id=decision_id,
    )


def _raise_refusal(one: SaveCandidate, outcome: Outcome) -> None:
    if one.event != "REJECT":
        return
    decision_id = outcome.decision_id or ""
    if one.duplicate_of is not None and len(one.reasons) == 1:
        raise DuplicateMemoryError(one.duplicate_of, one.similarity, decision_id)
    raise GateRejectedError(
        [reason.model_dump(mode="json") for reason in outcome.reasons], decision_id
    )


def _count(batch: list[SaveCandidate]) -> None:
    for one in batch:
        event = one.event or "ADD"
        MEMORY_EVENTS.labels(event).inc()
        for code in [reason.code for reason in one.reasons] or ["accepted"]:
            if event != "SKIP":
                GATE_DECISIONS.labels("duplicate" if event == "NONE" else code).inc()
    log.info(
        "memories_saved",
        added=sum(one.event in {"ADD", "SUPERSEDE"} for one in batch),
        rejected=sum(one.event == "REJECT" for one in batch),
    )
