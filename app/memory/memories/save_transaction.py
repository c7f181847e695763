"""What a save does in its transaction: one statement reads, the statements are decided, and one
statement writes. More are sent only for what is rare: a user who is new, a memory that is replaced.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Principal
from app.identity.tenants.repository import TenantRepository
from app.language.llm.embedder import Embedder
from app.memory.memories.amendments import end_predecessors, successor_begins, supersede
from app.memory.memories.candidates import SaveCandidate
from app.memory.memories.conflict_repository import shown_memories
from app.memory.memories.duplicates import EXPIRED, DuplicateCheck
from app.memory.memories.gate import verdict_row
from app.memory.memories.owner import MemoryOwner, ensure_owner
from app.memory.memories.record_repository import (
    MemoryChange,
    RecordRepository,
    changed,
    refusals,
)
from app.memory.memories.refreshes import refresh_added, take_orders
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.save_repository import SaveRepository, Stored
from app.memory.memories.schemas import MemoryCreate, MemoryRead, Outcome, Reason
from app.platform.outbox.models import Event
from app.platform.outbox.repository import OutboxRepository
from app.platform.values.fields import in_utc

_GIVEN: Final = (
    "memory_type", "attribute", "tier", "confidence", "source", "source_id", "evidence",
    "visibility", "external_id", "valid_from", "valid_to", "expires_at",
)  # fmt: skip
"""What the statements of a request share, by column."""


@dataclass(frozen=True, slots=True)
class SaveTransaction:
    """A request's statements in a transaction, which this never begins or ends.

    Args:
        threshold: the similarity from which a text may be a duplicate.
        create: users and agents are made on first use.

    """

    db: AsyncSession
    principal: Principal
    body: MemoryCreate
    owner: MemoryOwner
    embedder: Embedder
    threshold: Callable[[str], float]
    create: bool

    async def preview(self, batch: Sequence[SaveCandidate]) -> None:
        """Give every open candidate the event that it would get; nothing is changed."""
        duplicates, stored = await self._read(batch)
        await duplicates.preview(self.owner.columns(), batch, stored)

    async def store(
        self, batch: Sequence[SaveCandidate], *, more_follow: bool = False
    ) -> list[Outcome]:
        """Decide about `batch` under the bucket's lock, and store what is new; one outcome each.

        Args:
            more_follow: the transaction will lock further rows, so that jobs are ordered only
                at its end.

        Raises:
            What `ensure_owner` raises: one of the owners is missing or may not be written to.
            InvalidValidityError: a replacing statement would end before it begins.

        """
        duplicates, stored = await self._read(batch)
        if any(candidate.event is None for candidate in batch) and not self._may_write(stored):
            # A known statement is answered only where it could also be saved.
            await ensure_owner(self.db, self.principal, self.owner, create=self.create)
            if stored.near and not stored.owner_is_there:
                # The read waited while the user was erased, and saw what has gone with the user.
                duplicates, stored = await self._read(batch)
        known = await duplicates.decide(self.owner.columns(), batch, stored)
        shown = {
            memory.memory_id: memory
            for memory in await shown_memories(self.db, self.principal.access, list(known.values()))
        }
        await self._records().note(duplicates.archived, actor=self.principal.key_id, reason=EXPIRED)
        fresh = [candidate for candidate in batch if candidate.event in {"ADD", "SUPERSEDE"}]
        replacing = [candidate for candidate in fresh if candidate.event == "SUPERSEDE"]
        begin = self.body.valid_from
        if replacing:
            memories = MemoryRepository(self.db, self.principal.access)
            begin = await successor_begins(memories, begin or stored.now, self.body.valid_to)
        shared = self._shared()
        rows = [_row(shared, candidate, begin) for candidate in fresh]
        verdicts = {
            candidate.index: self._verdict(shared, candidate)
            for candidate in batch
            if candidate.event != "SKIP"
        }
        added = await self._write(
            rows, list(verdicts.values()), stored, last=not (more_follow or replacing)
        )
        for row, kept in zip(rows, added, strict=True):
            shown[row["memory_id"]] = _read_model(row, kept, stored.now)
        events = changed([("ADD", one) for one in added]) if stored.subscriptions else []
        if replacing:
            await self._publish(events, stored)
            events = []
            await self._replace(replacing, begin or stored.now)
        if stored.subscriptions:
            await self._publish(events + refusals(list(verdicts.values())), stored)
        return [
            outcome_of(
                candidate,
                shown.get(candidate.memory_id or ""),
                verdicts.get(candidate.index, {}).get("decision_id"),
            )
            for candidate in batch
        ]

    async def _read(self, batch: Sequence[SaveCandidate]) -> tuple[DuplicateCheck, Stored]:
        undecided = [candidate for candidate in batch if candidate.event is None]
        memories = MemoryRepository(self.db, self.principal.access)
        duplicates = DuplicateCheck(memories, self.body.on_duplicate, self.threshold)
        stored = await SaveRepository(self.db, self.principal.access).read(
            self.owner, undecided, self.embedder.name, duplicates.floors(undecided)
        )
        return duplicates, stored

    def _may_write(self, stored: Stored) -> bool:
        simple = self.owner.session_id is None and self.owner.project_id is None
        return simple and stored.owner_is_there

    def _records(self) -> RecordRepository:
        return RecordRepository(self.db, self.principal.access)

    async def _write(
        self,
        rows: Sequence[dict[str, Any]],
        verdicts: Sequence[dict[str, Any]],
        stored: Stored,
        *,
        last: bool,
    ) -> list[dict[str, Any]]:
        """The new memories as the history has them; with `last` jobs are ordered with them."""
        if rows and not stored.model_is_noted:
            tenants = TenantRepository(self.db, self.principal.tenant_id)
            await tenants.note_model(self.embedder.name)
        actor = self.principal.key_id
        refresh_added(self.db, self.principal.tenant_id, rows, actor)
        orders = await take_orders(self.db) if last else []
        if not (verdicts or orders):
            return []
        return await SaveRepository(self.db, self.principal.access).write(
            rows, verdicts, orders, actor=actor, now=stored.now
        )

    async def _publish(self, events: Sequence[Event], stored: Stored) -> None:
        outbox = OutboxRepository(self.db, self.principal.tenant_id)
        await outbox.publish_among(stored.subscriptions, events, stored.now)

    async def _replace(self, replacing: Sequence[SaveCandidate], at: datetime) -> None:
        """End what stored candidates replace, and keep that content as `previous`."""
        memories = MemoryRepository(self.db, self.principal.access)
        changes: list[MemoryChange] = []
        for candidate in replacing:
            old = await memories.get(candidate.duplicate_of or "", lock=True)
            candidate.previous = old.content
            changes += await end_predecessors(self.db, memories, old, at)
            changes.append(await supersede(self.db, old, candidate.memory_id or "", at))
        await self._records().note(changes, actor=self.principal.key_id)

    def _shared(self) -> dict[str, Any]:
        """Values that all memories of the request have, by column."""
        given = {name: getattr(self.body, name) for name in _GIVEN}
        made = {"embedding_model": self.embedder.name, "creator": self.principal.key_id}
        return given | self.owner.columns() | made

    def _verdict(self, shared: Mapping[str, Any], candidate: SaveCandidate) -> dict[str, Any]:
        accepted = candidate.event in {"ADD", "SUPERSEDE"}
        return verdict_row(
            self.principal,
            owner=shared,
            content=candidate.content,
            source=self.body.source,
            accepted=accepted,
            reasons=candidate.reasons,
            request=None if accepted else _row(shared, candidate, self.body.valid_from),
            memory_id=candidate.memory_id or candidate.duplicate_of,
            event=candidate.event,
            evidence=self.body.evidence,
        )


def _row(
    shared: Mapping[str, Any], candidate: SaveCandidate, begin: datetime | None
) -> dict[str, Any]:
    """The columns of a new memory; a successor is valid from `begin`."""
    return {
        **shared,
        "valid_from": begin if candidate.event == "SUPERSEDE" else shared["valid_from"],
        "memory_id": candidate.memory_id,
        "content": candidate.content,
        "content_hash": candidate.content_hash,
        "source_error": candidate.source_error,
        "said_at": candidate.said_at,
        "metadata": candidate.metadata,
        "embedding": candidate.vector,
    }


def _read_model(row: Mapping[str, Any], kept: dict[str, Any], now: datetime) -> MemoryRead:
    """A new memory as it crosses HTTP: as the history has it, with the times of its row."""
    said_at = row["said_at"]
    return MemoryRead.of_valid(
        kept
        | {
            "conflicts_with": [],
            "newer_conflicts": [],
            "said_at": None if said_at is None else in_utc(said_at),
            "valid_from": row["valid_from"],
            "valid_to": row["valid_to"],
            "expires_at": row["expires_at"],
            "use_count": 0,
            "last_used_at": None,
            "create_time": now,
            "update_time": now,
        }
    )


def outcome_of(
    candidate: SaveCandidate, memory: MemoryRead | None, decision_id: str | None
) -> Outcome:
    """What became of one statement."""
    return Outcome.of_valid(
        {
            "index": candidate.index,
            "event": candidate.event or "ADD",
            "memory_id": candidate.memory_id,
            "memory": memory,
            "content": None,
            "previous": candidate.previous,
            "replaced": [],
            "reason": None,
            "similarity": candidate.similarity,
            "reasons": [
                Reason(code=reason.code, detail=reason.detail, figures=dict(reason.figures))
                for reason in candidate.reasons
            ],
            "decision_id": decision_id,
        }
    )
