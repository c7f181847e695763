"""Changing what is remembered: edit, archive, restore, supersede; each leaves its history."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog

from app.database.engine import Database
from app.database.ids import new_id
from app.errors import VersionConflictError
from app.memories.duplicates import EXPIRED, make_room
from app.memories.embedding import Embedders, embed
from app.memories.errors import (
    DuplicateMemoryError,
    GateRejectedError,
    InvalidValidityError,
    NotChangeableError,
)
from app.memories.gate import Gate, Proposal, Reason
from app.memories.models import Memory
from app.memories.place import refuse_closed
from app.memories.records import Change, RecordRepository, snapshot
from app.memories.repository import MemoryRepository
from app.memories.saving import superseded
from app.memories.schemas import MemoryPatch, MemoryRead, MemorySupersede, Outcome
from app.memories.service import refuse_strangers
from app.memories.verdicts import verdict_row
from app.tenants.access import Principal
from app.tenants.repository import TenantRepository
from app.text.normalise import content_hash
from app.text.offload import read_text
from app.web.idempotency import NEVER, Once
from app.web.metrics import GATE_DECISIONS, MEMORY_EVENTS
from app.web.switches import Switches

log = structlog.get_logger()

_CLEARABLE = {"source_error", "external_id", "valid_from", "valid_to", "expires_at"}
"""Fields that null empties; elsewhere null means "leave it"."""

_JUDGED = {"content", "confidence", "source_error", "metadata_"}
"""Fields that the gate has a say in."""


_TRIES = 5
"""How often an edit is judged anew when others keep changing the memory."""


class _MovedError(VersionConflictError):
    """The row was judged as it stood before somebody else changed it."""


class EditingService:
    def __init__(
        self,
        database: Database,
        embedders: Embedders,
        switches: Switches,
        gate: Gate,
        now: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._embedders = embedders
        self._switches = switches
        self._gate = gate
        self._now = now

    async def patch(
        self, principal: Principal, memory_id: str, body: MemoryPatch, *, expected: int | None
    ) -> MemoryRead:
        """Change a memory; a new content passes the gate and gets its own vector.

        Raises:
            MemoryNotFoundError, VersionConflictError, NotYourMemoryError: as they say.
            NotChangeableError: it was superseded.
            DisabledError, MemoryPausedError: its user, agent or session is switched off.
            GateRejectedError, InvalidValidityError: nothing was changed.
            DuplicateMemoryError: another memory says exactly that.
            EmbeddingUnavailableError: nothing was changed; safe to retry.

        """
        self._switches.refuse_writes()
        for _ in range(_TRIES - 1):
            try:
                return await self._patch(principal, memory_id, body, expected=expected)
            except _MovedError:
                # Without `If-Match` the last write wins, judged anew as the row stands now.
                continue
        return await self._patch(principal, memory_id, body, expected=expected)

    async def _patch(
        self, principal: Principal, memory_id: str, body: MemoryPatch, *, expected: int | None
    ) -> MemoryRead:
        changes: dict[str, Any] = {
            {"metadata": "metadata_"}.get(name, name): value
            for name, value in body.model_dump(exclude_unset=True, exclude={"reason"}).items()
            if value is not None or name in _CLEARABLE
        }
        # Read first: the vector is made outside the transaction that stores it.
        async with self._database.begin(principal.tenant_id) as db:
            seen = await MemoryRepository(db, principal.access).get(memory_id)
            refuse_strangers(principal, seen)
            await refuse_closed(db, principal, seen, remembering="content" in changes)
        await self._judge(principal, seen, changes)
        model = await self._embed(principal, seen.agent_id, changes)
        async with self._database.begin(principal.tenant_id) as db:
            memories = MemoryRepository(db, principal.access)
            await memories.lock_bucket(seen.scope, seen.scope_id)
            row = await memories.get(memory_id, lock=True)
            if expected is not None and row.version != expected:
                raise VersionConflictError(row.version)
            if row.status == "superseded":
                raise NotChangeableError(memory_id, row.status)
            if row.version != seen.version:
                raise _MovedError(row.version)
            records = RecordRepository(db, principal.access)
            event = _event(row, changes)
            expired = await _refuse_twin(memories, row, changes)
            await records.note(expired, actor=principal.key_id, reason=EXPIRED)
            if model is not None:
                await TenantRepository(db, principal.tenant_id).note_model(model)
            change = await _apply(db, row, changes, event)
            if change is not None:
                await records.note([change], actor=principal.key_id, reason=body.reason)
                if _JUDGED & changes.keys():
                    await records.decide([_verdict(principal, row, changes, [])])
            answer = MemoryRead.model_validate(row)
        if change is not None:
            MEMORY_EVENTS.labels(event).inc()
        return answer

    async def supersede(
        self, principal: Principal, memory_id: str, body: MemorySupersede, *, once: Once = NEVER
    ) -> Outcome:
        """Put a newer statement in the place of a memory, which keeps its text and ends now.

        Raises:
            MemoryNotFoundError, NotYourMemoryError: as they say.
            NotChangeableError: it is not active.
            DisabledError, MemoryPausedError: its user, agent or session is switched off.
            GateRejectedError, DuplicateMemoryError: nothing was changed.
            EmbeddingUnavailableError: nothing was changed; safe to retry.

        """
        self._switches.refuse_writes()
        async with self._database.begin(principal.tenant_id) as db:
            await once.claim(db)
            seen = await MemoryRepository(db, principal.access).get(memory_id)
            refuse_strangers(principal, seen)
            await refuse_closed(db, principal, seen, remembering=True)
        given = body.model_dump(exclude={"reason", "metadata"}, exclude_none=True)
        given["metadata_"] = seen.metadata_ if body.metadata is None else body.metadata
        await self._judge(principal, seen, given)
        model = await self._embed(principal, seen.agent_id, given)
        async with self._database.begin(principal.tenant_id) as db:
            await once.claim(db)
            memories = MemoryRepository(db, principal.access)
            await memories.lock_bucket(seen.scope, seen.scope_id)
            old = await memories.get(memory_id, lock=True)
            if old.status != "active":
                raise NotChangeableError(memory_id, old.status)
            if given["content_hash"] == old.content_hash:
                raise DuplicateMemoryError(old.memory_id, 1.0, None)
            expired = await _refuse_twin(memories, old, given)
            if model is not None:
                await TenantRepository(db, principal.tenant_id).note_model(model)
            row = _successor(old, given, principal.key_id)
            [new] = await memories.add_all([row])
            changes: list[Change] = [
                ("ADD", None, snapshot(new)),
                await superseded(db, old, new.memory_id, self._now()),
            ]
            records = RecordRepository(db, principal.access)
            await records.note(expired, actor=principal.key_id, reason=EXPIRED)
            await records.note(changes, actor=principal.key_id, reason=body.reason)
            await records.decide([_verdict(principal, new, given, [])])
            outcome = Outcome(
                index=0,
                event="SUPERSEDE",
                memory_id=new.memory_id,
                memory=MemoryRead.model_validate(new),
                previous=old.content,
            )
            await once.keep(db, outcome, status=201, user_id=new.user_id)
        MEMORY_EVENTS.labels("SUPERSEDE").inc()
        log.info("memory_superseded", memory_id=memory_id, by=new.memory_id)
        return outcome

    async def _judge(self, principal: Principal, row: Memory, changes: dict[str, Any]) -> None:
        """Let the gate see the changes, and keep its refusal.

        Raises:
            GateRejectedError: nothing was changed but for the verdict.

        """
        reasons = await read_text(_characters(row, changes), _check, row, changes, self._gate)
        if not reasons:
            return
        verdict = _verdict(principal, row, changes, reasons)
        async with self._database.begin(principal.tenant_id) as db:
            await RecordRepository(db, principal.access).decide([verdict])
        for reason in reasons:
            GATE_DECISIONS.labels(reason.code).inc()
        raise GateRejectedError(
            [
                {"code": one.code, "detail": one.detail, "figures": dict(one.figures)}
                for one in reasons
            ],
            str(verdict["decision_id"]),
        )

    async def _embed(
        self, principal: Principal, agent_id: str | None, changes: dict[str, Any]
    ) -> str | None:
        """Add the vector of a new content to `changes`; returns the model that made it."""
        if "content" not in changes:
            return None
        embedder = await self._embedders.for_writing(principal, agent_id)
        changes["embedding"] = (await embed(embedder, [changes["content"]]))[0]
        changes["embedding_model"] = embedder.name
        return embedder.name


def _characters(row: Memory, changes: dict[str, Any]) -> int:
    """How much text the gate reads: what changes, and what stays beside it."""
    content, error, metadata = (
        changes.get(name, getattr(row, name)) for name in ("content", "source_error", "metadata_")
    )
    return len(content) + len(error or "") + len(json.dumps(metadata))


def _check(row: Memory, changes: dict[str, Any], gate: Gate) -> list[Reason]:
    """Why these changes may not be made, by rules that need no lock."""
    begin, end = (changes.get(name, getattr(row, name)) for name in ("valid_from", "valid_to"))
    if {"valid_from", "valid_to"} & changes.keys() and begin and end and begin >= end:
        raise InvalidValidityError
    if "content" in changes:
        changes["content"] = changes["content"].strip()
    proposal = gate.redacted(
        Proposal(
            changes.get("content", row.content),
            changes.get("confidence", row.confidence),
            changes.get("source_error", row.source_error),
            changes.get("metadata_", row.metadata_),
        )
    )
    judged = {
        "content": proposal.content,
        "source_error": proposal.source_error,
        "metadata_": dict(proposal.metadata),
    }
    changes |= {name: value for name, value in judged.items() if name in changes}
    if "content" in changes:
        changes["content_hash"] = content_hash(changes["content"])
    reasons = gate.check(proposal) if _JUDGED & changes.keys() else []
    if proposal.source_error is not None and (
        changes.get("memory_type", row.memory_type) != "correction"
    ):
        reasons.append(Reason("source_error_not_allowed", "Only a correction has one.", {}))
    return reasons


def _verdict(
    principal: Principal, row: Memory, changes: dict[str, Any], reasons: list[Reason]
) -> dict[str, Any]:
    names = ("user_id", "agent_id", "session_id", "project_id", "scope")
    return verdict_row(
        principal,
        place={name: getattr(row, name) for name in names},
        content=changes.get("content", row.content),
        source=row.source,
        accepted=not reasons,
        reasons=reasons,
        memory_id=row.memory_id,
    )


def _event(row: Memory, changes: dict[str, Any]) -> str:
    status = changes.get("status", row.status)
    if status == row.status:
        return "UPDATE"
    return "ARCHIVE" if status == "archived" else "RESTORE"


async def _refuse_twin(
    memories: MemoryRepository, row: Memory, changes: dict[str, Any]
) -> list[Change]:
    """Make sure that no other active memory of the bucket says exactly that.

    Returns:
        What was archived since it counts no longer.

    Raises:
        DuplicateMemoryError: one does; it is named to those who may see it.

    """
    status = changes.get("status", row.status)
    digest = changes.get("content_hash", row.content_hash)
    if status != "active" or (digest == row.content_hash and row.status == "active"):
        return []
    bucket = {name: getattr(row, name) for name in ("scope", "scope_id", "user_id", "agent_id")}
    twin = (await memories.same_hash(bucket, [digest])).get(digest)
    if twin is None or twin.row.memory_id == row.memory_id:
        return []
    if not twin.past:
        raise DuplicateMemoryError(twin.row.memory_id if twin.shown else None, 1.0, None)
    return await make_room(memories, twin.row)


async def _apply(db: Any, row: Memory, changes: dict[str, Any], event: str) -> Change | None:
    derived = {"content_hash", "embedding", "embedding_model"}
    if all(getattr(row, name) == value for name, value in changes.items() if name not in derived):
        return None
    before = snapshot(row)
    for name, value in changes.items():
        setattr(row, name, value)
    row.version += 1
    await db.flush()
    await db.refresh(row)
    return event, before, snapshot(row)


def _successor(old: Memory, given: dict[str, Any], creator: str) -> dict[str, Any]:
    kept = {
        name: getattr(old, name)
        for name in (
            "tenant_id", "scope", "scope_id", "user_id", "agent_id", "session_id", "project_id",
            "memory_type", "tier", "source", "visibility", "expires_at",
        )
    }  # fmt: skip
    return kept | {"evidence": []} | given | {"memory_id": new_id("mem"), "creator": creator}
