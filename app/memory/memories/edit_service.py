"""Changing what is remembered: edit, archive, restore, supersede; each leaves its history."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import VersionConflictError
from app.identity.agents.config import Processing
from app.identity.agents.embedders import Embedders, embed
from app.identity.tenants.access import Principal
from app.identity.tenants.repository import TenantRepository
from app.language.text.offload import read_text
from app.memory.memories.amendments import (
    JUDGED,
    amendment_verdict,
    broken_rules,
    characters,
    end_predecessors,
    patch_event,
    patch_values,
    refuse_same_text,
    restored_values,
    successor,
    successor_begins,
    supersede,
    superseding_values,
    was_closed,
)
from app.memory.memories.conflict_repository import MOST, ConflictRepository, link, shown_memories
from app.memory.memories.duplicates import EXPIRED
from app.memory.memories.errors import (
    DuplicateMemoryError,
    GateRejectedError,
    HistoryNotFoundError,
    NotChangeableError,
)
from app.memory.memories.gate import Gate
from app.memory.memories.models import Memory
from app.memory.memories.owner import permit, refuse_switched_off
from app.memory.memories.processors import before_change
from app.memory.memories.record_repository import MemoryChange, RecordRepository, rewrite, snapshot
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.schemas import (
    MemoryPatch,
    MemoryRead,
    MemoryRestore,
    MemoryRestored,
    MemorySupersede,
    Outcome,
)
from app.platform.observability.metrics import GATE_DECISIONS, MEMORY_EVENTS
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

_TRIES = 5
"""How often an edit is judged anew when others keep changing the memory."""


class _MovedError(VersionConflictError):
    """The row was changed by another transaction after it was judged."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """What becomes of a row: the event, its new values, and the model of a new vector."""

    event: str
    changes: dict[str, Any]
    model: str | None
    reason: str | None


class EditService:
    """Changes memories; every change is recorded in their history."""

    def __init__(
        self,
        work: Work,
        embedders: Embedders,
        gate: Gate,
        processing: Processing,
    ) -> None:
        self._work = work
        self._embedders = embedders
        self._gate = gate
        self._processing = processing

    async def patch(
        self,
        principal: Principal,
        memory_id: str,
        body: MemoryPatch,
        *,
        expected: int | None,
        key: IdempotencyKey | None = None,
    ) -> MemoryRead:
        """The changed memory; a new content passes the gate and gets its own vector.

        The same values again change nothing. Without `expected` the last write wins. Safe to
        retry with `key`.

        Raises:
            MemoryNotFoundError, VersionConflictError: as they say.
            NotYourMemoryError, ReadOnlyMemberError: the caller may only read it.
            NotChangeableError: it was superseded.
            DisabledError, MemoryPausedError: its user, agent or session is switched off.
            GateRejectedError, InvalidValidityError: nothing was changed.
            DuplicateMemoryError: another memory says exactly that.
            EmbeddingUnavailableError, ProcessorFailedError: nothing was changed; safe to retry.

        """
        self._work.refuse_disabled()
        for _ in range(_TRIES - 1):
            try:
                return await self._patch(principal, memory_id, body, expected, key)
            except _MovedError:
                # Without `If-Match` the last write wins, judged again by the row as it is now.
                continue
        return await self._patch(principal, memory_id, body, expected, key)

    async def _patch(
        self,
        principal: Principal,
        memory_id: str,
        body: MemoryPatch,
        expected: int | None,
        key: IdempotencyKey | None,
    ) -> MemoryRead:
        """One try of `patch`.

        Raises:
            _MovedError: the memory changed meanwhile; the edit is to be judged again.

        """
        changes = patch_values(body)
        # Read first: the vector is made outside the transaction that stores it.
        async with self._work.read(principal, key) as db:
            seen = await MemoryRepository(db, principal.access).get(memory_id)
            await permit(db, principal, seen, "edit")
            await refuse_switched_off(db, principal, seen, remembering="content" in changes)
        await self._process(principal, seen, changes)
        await self._judge(principal, seen, changes)
        if changes.get("content", seen.content) != seen.content:
            # Whoever was quoted did not say the new words, and nobody compared them with others.
            changes |= {"speaker": None, "conflict_ids": None}
        model = await self._embed(principal, seen.agent_id, changes)
        event = patch_event(seen, changes)
        async with self._work.write(principal, key, while_disabled=True) as unit:
            row = await _locked(unit.db, principal, seen, expected)
            if row.status == "superseded":
                raise NotChangeableError(memory_id, row.status)
            amendment = Amendment(event, changes, model, body.reason)
            change = await _amended(unit.db, principal, row, amendment)
            [answer] = await shown_memories(unit.db, principal.access, [row])
            unit.answer(answer, 200, user_id=row.user_id)
        if change is not None:
            MEMORY_EVENTS.labels(event).inc()
        return answer

    async def supersede(
        self,
        principal: Principal,
        memory_id: str,
        body: MemorySupersede,
        *,
        key: IdempotencyKey | None = None,
    ) -> Outcome:
        """Store a newer statement that replaces a memory, which keeps its text and ends now.

        The outcome names the new memory. Safe to retry with `key`.

        Raises:
            MemoryNotFoundError: as it says.
            NotYourMemoryError, ReadOnlyMemberError: the caller may only read it.
            NotChangeableError: it is not active, or has a successor that begins later.
            DisabledError, MemoryPausedError: its user, agent or session is switched off.
            GateRejectedError, DuplicateMemoryError: nothing was changed.
            InvalidValidityError: it would end before it begins.
            EmbeddingUnavailableError, ProcessorFailedError: nothing was changed; safe to retry.

        """
        self._work.refuse_disabled()
        async with self._work.read(principal, key) as db:
            seen = await MemoryRepository(db, principal.access).get(memory_id)
            await permit(db, principal, seen, "edit")
            await refuse_switched_off(db, principal, seen, remembering=True)
        given = superseding_values(seen, body)
        await self._process(principal, seen, given)
        await self._judge(principal, seen, given)
        model = await self._embed(principal, seen.agent_id, given)
        async with self._work.write(principal, key) as unit:
            old = await _replaceable(unit.db, principal, seen, given)
            amendment = Amendment("SUPERSEDE", given, model, body.reason)
            new = await _succeeded(
                unit.db, principal, old, amendment, body.valid_from, body.valid_to
            )
            outcome = Outcome(
                index=0,
                event="SUPERSEDE",
                memory_id=new.memory_id,
                memory=MemoryRead.model_validate(new),
                previous=old.content,
                replaced=[old.memory_id],
            )
            unit.answer(outcome, 201, user_id=new.user_id)
        MEMORY_EVENTS.labels("SUPERSEDE").inc()
        log.info("memory_superseded", memory_id=memory_id, by=new.memory_id)
        return outcome

    async def restore(
        self,
        principal: Principal,
        memory_id: str,
        body: MemoryRestore,
        *,
        expected: int | None,
        key: IdempotencyKey | None = None,
    ) -> MemoryRestored:
        """Make a memory what it was right after one entry of its history, as a new entry.

        Its content, type, status, validity and metadata come back; its owner never changes. A
        superseded memory is active again, in conflict with its successor, which stays as it is.
        Deleted memories are hidden for good. The present state makes no entry. Retry with `key`.

        Raises:
            MemoryNotFoundError, VersionConflictError: as they say.
            NotYourMemoryError, ReadOnlyMemberError: the caller may only read it.
            HistoryNotFoundError: the history has no such entry with a state after it.
            DisabledError, MemoryPausedError: its user, agent or session is switched off.
            GateRejectedError, InvalidValidityError: by the rules of today; nothing changed.
            DuplicateMemoryError: another memory says exactly that.
            EmbeddingUnavailableError: nothing was changed; safe to retry.

        """
        self._work.refuse_disabled()
        for _ in range(_TRIES - 1):
            try:
                return await self._restore(principal, memory_id, body, expected, key)
            except _MovedError:
                continue
        return await self._restore(principal, memory_id, body, expected, key)

    async def _restore(
        self,
        principal: Principal,
        memory_id: str,
        body: MemoryRestore,
        expected: int | None,
        key: IdempotencyKey | None,
    ) -> MemoryRestored:
        """One try of `restore`.

        Raises:
            _MovedError: the memory changed meanwhile; the edit is to be judged again.
            HistoryNotFoundError: there is no such entry for this caller.

        """
        async with self._work.read(principal, key) as db:
            memories = MemoryRepository(db, principal.access)
            seen = await memories.get(memory_id)
            await permit(db, principal, seen, "edit")
            entry = await RecordRepository(db, principal.access).entry(memory_id, body.history_id)
            if was_closed(principal.access, seen, entry.after):
                raise HistoryNotFoundError(memory_id, body.history_id)
            changes = restored_values(seen, entry.after or {})
            if changes.get("superseded_by") and not await memories.has(changes["superseded_by"]):
                # Its successor is gone for good.
                changes["superseded_by"] = None
            await refuse_switched_off(db, principal, seen, remembering="content" in changes)
        await self._judge(principal, seen, changes)
        model = await self._embed(principal, seen.agent_id, changes)
        async with self._work.write(principal, key, while_disabled=True) as unit:
            row = await _locked(unit.db, principal, seen, expected)
            superseded_by = row.superseded_by
            amendment = Amendment("RESTORE", changes, model, body.reason)
            change = await _restored(unit.db, principal, row, amendment)
            [memory] = await shown_memories(unit.db, principal.access, [row])
            answer = MemoryRestored(memory=memory, superseded_by=superseded_by)
            unit.answer(answer, 200, user_id=row.user_id)
        if change is not None:
            MEMORY_EVENTS.labels("RESTORE").inc()
            log.info("memory_restored", memory_id=memory_id, history_id=body.history_id)
        return answer

    async def _process(self, principal: Principal, row: Memory, changes: dict[str, Any]) -> None:
        if {"content", "metadata_"} & changes.keys():
            chain = await self._processing.of_agent(principal, row.agent_id)
            await before_change(chain, principal, row, changes)

    async def _judge(self, principal: Principal, row: Memory, changes: dict[str, Any]) -> None:
        """Let the gate judge the changes, and record its refusal.

        Raises:
            GateRejectedError: nothing was changed; the decision is recorded.

        """
        reasons = await read_text(characters(row, changes), broken_rules, row, changes, self._gate)
        if not reasons:
            return
        verdict = amendment_verdict(principal, row, changes, "REJECT", reasons)
        async with self._work.write(principal, while_disabled=True) as unit:
            await RecordRepository(unit.db, principal.access).decide([verdict])
        for reason in reasons:
            GATE_DECISIONS.labels(reason.code).inc()
        raise GateRejectedError(
            [
                {"code": reason.code, "detail": reason.detail, "figures": dict(reason.figures)}
                for reason in reasons
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


async def _locked(
    db: AsyncSession, principal: Principal, seen: Memory, expected: int | None
) -> Memory:
    """The row under its bucket's lock, as it was when it was judged.

    Raises:
        MemoryNotFoundError, VersionConflictError: as they say.
        NotYourMemoryError, ReadOnlyMemberError: the role was lost meanwhile.
        _MovedError: another transaction changed it meanwhile.

    """
    memories = MemoryRepository(db, principal.access)
    await memories.lock_bucket(seen.scope, seen.scope_id)
    row = await memories.get(seen.memory_id, lock=True)
    await permit(db, principal, row, "edit")
    if expected is not None and row.version != expected:
        raise VersionConflictError(row.version)
    if row.version != seen.version:
        raise _MovedError(row.version)
    return row


async def _amended(
    db: AsyncSession, principal: Principal, row: Memory, amendment: Amendment
) -> MemoryChange | None:
    """Change a locked row, and keep its history and the verdict; None when nothing differs.

    Raises:
        DuplicateMemoryError: another memory says exactly that.

    """
    changes, actor = amendment.changes, principal.key_id
    records = RecordRepository(db, principal.access)
    expired = await refuse_same_text(MemoryRepository(db, principal.access), row, changes)
    await records.note(expired, actor=actor, reason=EXPIRED)
    if amendment.model is not None:
        await TenantRepository(db, principal.tenant_id).note_model(amendment.model)
    change = await rewrite(db, row, changes, amendment.event)
    if change is not None:
        await records.note([change], actor=actor, reason=amendment.reason)
        if JUDGED & changes.keys():
            await records.decide([amendment_verdict(principal, row, changes, amendment.event)])
    return change


async def _restored(
    db: AsyncSession, principal: Principal, row: Memory, amendment: Amendment
) -> MemoryChange | None:
    """Change a locked row as `_amended` does; what had taken its place is in conflict with it."""
    successor = row.superseded_by
    returns = amendment.changes.get("superseded_by", successor) is None
    ended = [successor] if successor and returns else []
    others = await ConflictRepository(db, principal.tenant_id).lock(snapshot(row), ended)
    if others:
        named = [*(amendment.changes.get("conflict_ids", row.conflict_ids) or ()), *ended]
        amendment = replace(amendment, changes=amendment.changes | {"conflict_ids": named[-MOST:]})
    change, linked = await _amended(db, principal, row, amendment), await link(db, others, [row])
    records = RecordRepository(db, principal.access)
    await records.note(linked, actor=principal.key_id, reason=amendment.reason)
    return change


async def _replaceable(
    db: AsyncSession, principal: Principal, seen: Memory, given: dict[str, Any]
) -> Memory:
    """The row under its bucket's lock, as it is now.

    Raises:
        MemoryNotFoundError: it is gone.
        NotChangeableError: it is not active, or has a successor already.
        DuplicateMemoryError: it has the text of the statement that would replace it.

    """
    memories = MemoryRepository(db, principal.access)
    await memories.lock_bucket(seen.scope, seen.scope_id)
    old = await memories.get(seen.memory_id, lock=True)
    await permit(db, principal, old, "edit")
    if old.superseded_by is not None:
        raise NotChangeableError(old.memory_id, "superseded")
    if old.status != "active":
        raise NotChangeableError(old.memory_id, old.status)
    if given["content_hash"] == old.content_hash:
        raise DuplicateMemoryError(old.memory_id, 1.0, None)
    return old


async def _succeeded(
    db: AsyncSession,
    principal: Principal,
    old: Memory,
    amendment: Amendment,
    valid_from: datetime | None,
    valid_to: datetime | None,
) -> Memory:
    """Store the successor of a locked row and end that row; keeps their history and the verdict.

    Raises:
        DuplicateMemoryError: another memory says exactly that.
        InvalidValidityError: it would end before it begins.

    """
    given, actor = amendment.changes, principal.key_id
    memories, records = (
        MemoryRepository(db, principal.access),
        RecordRepository(db, principal.access),
    )
    expired = await refuse_same_text(memories, old, given)
    if amendment.model is not None:
        await TenantRepository(db, principal.tenant_id).note_model(amendment.model)
    begin = await successor_begins(memories, valid_from, valid_to)
    row = successor(old, given | {"valid_from": begin, "valid_to": valid_to}, actor)
    [new] = await memories.add_all([row])
    changes = [
        MemoryChange("ADD", None, snapshot(new)),
        *await end_predecessors(db, memories, old, begin),
        await supersede(db, old, new.memory_id, begin),
    ]
    await records.note(expired, actor=actor, reason=EXPIRED)
    await records.note(changes, actor=actor, reason=amendment.reason)
    await records.decide([amendment_verdict(principal, new, given, amendment.event)])
    return new
