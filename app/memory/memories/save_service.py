"""Saving as given (`infer=false`): gate, duplicates, one transaction with its history.

The order is: the gate alone, then the vectors, then the transaction that looks for
duplicates under the bucket's lock and writes. So nothing waits for a model while it holds
a lock, and two saves of one text end as one memory.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import chain

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.config import Processing
from app.identity.agents.embedders import Embedders, embed
from app.identity.tenants.access import Principal
from app.identity.users.service import for_default_user
from app.language.llm.embedder import Embedder
from app.language.llm.errors import EmbeddingUnavailableError
from app.language.text.offload import read_text
from app.memory.memories.candidates import SaveCandidate, candidates, characters
from app.memory.memories.errors import (
    DuplicateMemoryError,
    GateRejectedError,
)
from app.memory.memories.gate import Gate
from app.memory.memories.owner import MemoryOwner, ensure_owner, requested_owner
from app.memory.memories.processors import before_store
from app.memory.memories.repository import MemoryRepository, bucket_lock
from app.memory.memories.save_transaction import SaveTransaction, outcome_of
from app.memory.memories.schemas import (
    MemoryAdded,
    MemoryCreate,
    MemoryRead,
    MemoryValidated,
    Outcome,
)
from app.memory.memories.search_schemas import RefusedStored
from app.platform.observability.metrics import GATE_DECISIONS, MEMORY_EVENTS
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

Also = Callable[[AsyncSession, Sequence[Outcome]], Awaitable[None]]
"""What else belongs to the transaction that saves; it gets the outcomes in order."""

StoredAnyway = Callable[[AsyncSession, MemoryRead], Awaitable[RefusedStored]]
"""The same for a text that was refused before; it gives the answer."""


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
    """Saves statements as they are given, each through the gate."""

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
        """Remember a text, a message, or up to 100 messages, each as it is given.

        The same text again, but for case and white space, changes nothing and returns the
        memory that is there, so that a retry is safe. A list is answered with one outcome
        each, in order; a single statement that is refused raises.

        Returns:
            The outcomes, and the HTTP status that fits them.

        Raises:
            GateRejectedError: refused, and nothing stored but the decision.
            DuplicateMemoryError: as above, and similarity to a memory is the only reason.
            EmbeddingUnavailableError, ProcessorFailedError: nothing was stored; safe to retry.
            MemoryDisabledError, MemoryPausedError, DisabledError: memory is switched off.
            UserRequiredError, ScopeRequiresError, SharedByAllUsersError,
            InsufficientScopeError: of the owner.
            What `ensure_owner` raises: one of the owners is missing or may not be written to.
            InvalidValidityError: a replacing statement would end before it begins.

        """
        self._work.refuse_disabled()
        owner = requested_owner(principal, body)
        body = await self._processed(principal, body, owner)
        batch = await read_text(characters(body), candidates, body, self._rules.gate)
        try:
            embedder = await self._embedders.for_writing(principal, owner.agent_id)
            await _embed(embedder, batch)
        except EmbeddingUnavailableError:
            # A request that was answered before needs no vector.
            await self._work.refuse_repeated(principal, key)
            raise
        single = not isinstance(body.messages, list)
        lock = bucket_lock(principal.tenant_id, owner.scope, owner.scope_id)
        async with self._work.write(principal, key, hot=True, lock=lock) as unit:
            saving = self._saving(unit.db, principal, body, owner, embedder)
            results = await saving.store(batch)
            added = MemoryAdded(results=results, warnings=body.part_warnings)
            status = 201 if single and results[0].event in {"ADD", "SUPERSEDE"} else 200
            if single and results[0].event == "REJECT":
                # Raised below, once its decision is stored.
                unit.answer_unkept(added)
            else:
                unit.answer(added, status, user_id=owner.user_id)
        _count(batch)
        if single:
            _raise_refusal(batch[0], results[0])
        return added, status

    async def add_refused(
        self,
        principal: Principal,
        body: MemoryCreate,
        past: Collection[str],
        also: StoredAnyway,
        *,
        key: IdempotencyKey | None = None,
    ) -> RefusedStored:
        """Remember one statement past some rules of the gate; all others hold.

        Args:
            principal: who stores it.
            body: the statement.
            past: codes of the rules.
            also: what else belongs to the transaction, with the answer for the outcome.
            key: the request's idempotency key.

        Raises:
            What `add` raises.

        """
        self._work.refuse_disabled()
        owner = requested_owner(principal, body)
        body = await self._processed(principal, body, owner)
        gate = self._rules.gate
        batch = await read_text(characters(body), candidates, body, gate, past)
        embedder = await self._embedders.for_writing(principal, owner.agent_id)
        await _embed(embedder, batch)
        lock = bucket_lock(principal.tenant_id, owner.scope, owner.scope_id)
        async with self._work.write(principal, key, lock=lock) as unit:
            saving = self._saving(unit.db, principal, body, owner, embedder)
            [outcome] = await saving.store(batch)
            stored = None
            if outcome.memory is None:
                # Raised below, once its decision is stored.
                unit.answer_unkept(MemoryAdded(results=[outcome]))
            else:
                stored = await also(unit.db, outcome.memory)
                unit.answer(stored, 201, user_id=owner.user_id)
        _count(batch)
        _raise_refusal(batch[0], outcome)
        if stored is None:
            # A memory that the caller may not see has the text.
            raise DuplicateMemoryError(None, 1.0, outcome.decision_id)
        return stored

    async def add_imported(
        self,
        principal: Principal,
        bodies: Sequence[MemoryCreate],
        also: Also,
        *,
        dry_run: bool = False,
    ) -> None:
        """Remember several single statements, each as its body says, in one transaction.

        They come from another product's memory: short and unsure ones are kept with the confidence
        that they have there; the other rules of the gate hold. A refused statement is an outcome
        like the others.

        Args:
            also: what else belongs to the transaction; it gets an outcome for each body.
            dry_run: store nothing; the outcomes are the expected ones.

        Raises:
            What `add` raises, without GateRejectedError and DuplicateMemoryError.

        """
        self._work.refuse_disabled()
        embedder = await self._embedders.for_writing(
            principal, bodies[0].agent_id if bodies else None
        )
        bodies = [
            await self._processed(principal, body, requested_owner(principal, body))
            for body in bodies
        ]
        gate = self._rules.gate.for_imports
        batches = [await read_text(characters(body), candidates, body, gate) for body in bodies]
        await _embed(embedder, [candidate for batch in batches for candidate in batch])
        outcomes: list[Outcome] = []
        async with self._work.write(principal) as unit:
            for body, batch in zip(bodies, batches, strict=True):
                owner = requested_owner(principal, body)
                saving = self._saving(unit.db, principal, body, owner, embedder)
                if dry_run:
                    await check_owner(unit.db, principal, owner, create=self._rules.auto_create)
                    await saving.preview(batch)
                    outcomes.append(_expected(batch[0]))
                else:
                    memories = MemoryRepository(unit.db, principal.access)
                    await memories.lock_bucket(owner.scope, owner.scope_id)
                    outcomes += await saving.store(batch, more_follow=True)
            await also(unit.db, outcomes)
        if not dry_run:
            _count([one for batch in batches for one in batch])

    async def validate(self, principal: Principal, body: MemoryCreate) -> MemoryValidated:
        """What `add` would do, one outcome per statement; nothing is stored, not even a decision.

        Raises:
            What `add` raises, without GateRejectedError and DuplicateMemoryError, which are
            outcomes here.

        """
        self._work.refuse_disabled()
        body = for_default_user(principal, body)
        owner = requested_owner(principal, body)
        body = await self._processed(principal, body, owner)
        batch = await read_text(characters(body), candidates, body, self._rules.gate)
        embedder = await self._embedders.for_writing(principal, owner.agent_id)
        await _embed(embedder, batch)
        async with self._work.read(principal) as db:
            if any(candidate.event is None for candidate in batch):
                await check_owner(db, principal, owner, create=self._rules.auto_create)
            await self._saving(db, principal, body, owner, embedder).preview(batch)
        return MemoryValidated(
            valid=all(candidate.event != "REJECT" for candidate in batch),
            results=[_expected(candidate) for candidate in batch],
        )

    async def _processed(
        self, principal: Principal, body: MemoryCreate, owner: MemoryOwner
    ) -> MemoryCreate:
        chain = await self._processing.of_agent(principal, owner.agent_id)
        return await before_store(chain, principal, body, owner)

    def _saving(
        self,
        db: AsyncSession,
        principal: Principal,
        body: MemoryCreate,
        owner: MemoryOwner,
        embedder: Embedder,
    ) -> SaveTransaction:
        return SaveTransaction(
            db,
            principal,
            body,
            owner,
            embedder,
            self._rules.threshold(embedder),
            create=self._rules.auto_create,
        )


async def check_owner(
    db: AsyncSession, principal: Principal, owner: MemoryOwner, *, create: bool
) -> None:
    """As `ensure_owner`, but nothing stays: users and agents made on first use are rolled back.

    Raises:
        What `ensure_owner` raises.

    """
    trial = await db.begin_nested()
    try:
        await ensure_owner(db, principal, owner, create=create)
    finally:
        await trial.rollback()


async def _embed(embedder: Embedder, batch: list[SaveCandidate]) -> None:
    open_ones = [candidate for candidate in batch if candidate.event is None]
    if open_ones:
        vectors = await embed(embedder, [candidate.content for candidate in open_ones])
        for candidate, vector in zip(open_ones, vectors, strict=True):
            candidate.vector = vector


def _expected(candidate: SaveCandidate) -> Outcome:
    """The outcome of a candidate that was not saved: a new one has no id yet."""
    outcome = outcome_of(candidate, None, None)
    if outcome.event in {"ADD", "SUPERSEDE"}:
        outcome.memory_id = None
    return outcome


def _raise_refusal(candidate: SaveCandidate, outcome: Outcome) -> None:
    """Raise the refusal of a single statement; nothing when it was accepted.

    Raises:
        GateRejectedError, DuplicateMemoryError: as in `SaveService.add`.

    """
    if candidate.event != "REJECT":
        return
    decision_id = outcome.decision_id or ""
    if candidate.duplicate_of is not None and len(candidate.reasons) == 1:
        raise DuplicateMemoryError(candidate.duplicate_of, candidate.similarity, decision_id)
    raise GateRejectedError(
        [reason.model_dump(mode="json") for reason in outcome.reasons], decision_id
    )


def _counted(candidate: SaveCandidate) -> Sequence[str]:
    """What counts of the decision about a statement."""
    if candidate.event == "NONE":
        return ("duplicate",) * (len(candidate.reasons) or 1)
    if candidate.event == "SKIP":
        return ()
    return [reason.code for reason in candidate.reasons] or ("accepted",)


def _count(batch: list[SaveCandidate]) -> None:
    # Counted here first: a labelled counter takes its time for each.
    events = Counter([candidate.event or "ADD" for candidate in batch])
    decisions = Counter(chain.from_iterable(map(_counted, batch)))
    for event, count in events.items():
        MEMORY_EVENTS.labels(event).inc(count)
    for code, count in decisions.items():
        GATE_DECISIONS.labels(code).inc(count)
    log.info(
        "memories_saved",
        added=events["ADD"] + events["SUPERSEDE"],
        rejected=events["REJECT"],
    )
