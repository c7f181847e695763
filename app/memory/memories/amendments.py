"""What an edit changes, read from the request or the history and judged; and how a memory ends in
favour of its successor.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access, Principal
from app.language.text.normal_forms import content_hash
from app.memory.memories.duplicates import archive_expired
from app.memory.memories.errors import DuplicateMemoryError, InvalidValidityError
from app.memory.memories.gate import KEPT_FIELDS, Gate, GateReason, Proposal, verdict_row
from app.memory.memories.models import Memory, MemoryHistory
from app.memory.memories.record_repository import KEPT, MemoryChange, rewrite, snapshot
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.schemas import MemoryPatch, MemorySupersede
from app.memory.memories.search_schemas import HistoryRead
from app.platform.database.base import new_id
from app.platform.database.engine import clock_of

CLEARABLE = {
    "attribute", "source_error", "external_id", "valid_from", "valid_to", "expires_at",
}  # fmt: skip
"""Fields that null empties; elsewhere null means "leave it"."""

JUDGED = {"content", "confidence", "source_error", "metadata_"}
"""Fields that the gate has a say in."""

RESTORED = (
    "content", "memory_type", "attribute", "tier", "source", "source_id", "source_error",
    "evidence", "confidence", "visibility", "status", "superseded_by", "external_id", "metadata",
    "expected_valid_days", "speaker", "conflict_ids",
)  # fmt: skip
RESTORED_TIMES = ("valid_from", "valid_to", "expires_at", "said_at")
"""What a memory says and when it counts; never its owner or scope."""


def patch_values(body: MemoryPatch) -> dict[str, Any]:
    """The columns a patch changes; null empties those that may be empty."""
    return {
        {"metadata": "metadata_"}.get(name, name): value
        for name, value in body.model_dump(exclude_unset=True, exclude={"reason"}).items()
        if value is not None or name in CLEARABLE
    }


def superseding_values(seen: Memory, body: MemorySupersede) -> dict[str, Any]:
    """The columns of a statement that replaces `seen`, without its validity.

    The validity of the old statement does not limit the new one.
    """
    apart = {"reason", "metadata", "valid_from", "valid_to"}
    given = body.model_dump(exclude=apart, exclude_none=True)
    given["metadata_"] = seen.metadata_ if body.metadata is None else body.metadata
    return given


def restored_values(row: Memory, after: Mapping[str, Any]) -> dict[str, Any]:
    """The columns in which a memory differs from a snapshot of it, as they were."""
    columns = Memory.__table__.columns
    # Entries that hold a null have every column there was then: one that came later stays as it is.
    sparse = None not in after.values()
    was = {n: after.get(n) for n in RESTORED if n in after or (sparse and columns[n].nullable)}
    if "metadata" in was:
        was["metadata_"] = was.pop("metadata")
    for name in RESTORED_TIMES:
        was[name] = datetime.fromisoformat(after[name]) if after.get(name) else None
    return {name: value for name, value in was.items() if getattr(row, name) != value}


def was_closed(access: Access, row: Memory, state: Mapping[str, Any] | None) -> bool:
    """Whether a state of the history was its author's alone, and the caller is another user.

    What was private then stays private when the item is shared later.
    """
    return (
        state is not None
        and access.user_id not in {None, row.user_id}
        and row.scope == "project"
        and state.get("visibility") == "owner_only"
    )


def history_entry(access: Access, memory: Memory, row: MemoryHistory) -> HistoryRead:
    """An entry of a memory's history as the caller sees it, states with every field."""
    shown = HistoryRead.model_validate(row)
    states = {"before": shown.before, "after": shown.after}
    return shown.model_copy(
        update={
            name: None if was_closed(access, memory, state) else dict.fromkeys(KEPT) | state
            for name, state in states.items()
            if state is not None
        }
    )


def characters(row: Memory, changes: dict[str, Any]) -> int:
    """How much text the gate reads: what changes, and what stays beside it."""
    content, error, metadata = (
        changes.get(name, getattr(row, name)) for name in ("content", "source_error", "metadata_")
    )
    return len(content) + len(error or "") + len(json.dumps(metadata))


def broken_rules(row: Memory, changes: dict[str, Any], gate: Gate) -> list[GateReason]:
    """Why these changes may not be made, by rules that need no lock; empty when they may.

    Raises:
        InvalidValidityError: the memory would end before it begins.

    """
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
    reasons = gate.check(proposal) if JUDGED & changes.keys() else []
    if proposal.source_error is not None and (
        changes.get("memory_type", row.memory_type) != "correction"
    ):
        reasons.append(GateReason("source_error_not_allowed", "Only a correction has one.", {}))
    return reasons


def amendment_verdict(
    principal: Principal,
    row: Memory,
    changes: dict[str, Any],
    event: str,
    reasons: Sequence[GateReason] = (),
) -> dict[str, Any]:
    names = ("user_id", "agent_id", "session_id", "project_id", "scope")
    return verdict_row(
        principal,
        owner={name: getattr(row, name) for name in names},
        content=changes.get("content", row.content),
        source=row.source,
        accepted=not reasons,
        reasons=reasons,
        request={name: changes.get(name, getattr(row, name)) for name in KEPT_FIELDS},
        memory_id=row.memory_id,
        event=event,
        evidence=changes.get("evidence", row.evidence),
    )


def patch_event(row: Memory, changes: dict[str, Any]) -> str:
    status = changes.get("status", row.status)
    if status == row.status:
        return "UPDATE"
    return "ARCHIVE" if status == "archived" else "RESTORE"


async def refuse_same_text(
    memories: MemoryRepository, row: Memory, changes: dict[str, Any]
) -> list[MemoryChange]:
    """Make sure that no other active memory of the bucket has this text.

    Returns:
        Changes of an expired memory with this text that was archived; empty otherwise.

    Raises:
        DuplicateMemoryError: a memory has it; its id is given to callers who may see it.

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
    return await archive_expired(memories, twin.row)


def successor(old: Memory, given: dict[str, Any], creator: str) -> dict[str, Any]:
    kept = {
        name: getattr(old, name)
        for name in (
            "tenant_id", "scope", "scope_id", "user_id", "agent_id", "session_id", "project_id",
            "memory_type", "attribute", "tier", "source", "visibility", "expires_at",
        )
    }  # fmt: skip
    return kept | {"evidence": []} | given | {"memory_id": new_id("mem"), "creator": creator}


async def successor_begins(
    memories: MemoryRepository, valid_from: datetime | None, valid_to: datetime | None
) -> datetime:
    """Since when a replacing statement holds: as given, else from now on.

    By the clock of the database, so that it counts for the next read.

    Raises:
        InvalidValidityError: it would end before it begins.

    """
    begin = valid_from or await memories.transaction_time()
    if valid_to is not None and valid_to <= begin:
        raise InvalidValidityError
    return begin


async def end_predecessors(
    db: AsyncSession, memories: MemoryRepository, old: Memory, at: datetime
) -> list[MemoryChange]:
    """End at `at` what `old` had replaced, where that still held later; the changes made.

    Without it, an early link of a chain and the last one would both hold for a time.
    """
    if old.valid_from is None or old.valid_from <= at:
        return []
    rows = await memories.lock_predecessors(old.memory_id, at)
    changes = [await rewrite(db, row, {"valid_to": at}, "UPDATE") for row in rows]
    return [change for change in changes if change is not None]


async def supersede(
    db: AsyncSession, old: Memory, new_memory_id: str, at: datetime
) -> MemoryChange:
    """End a locked memory in favour of a newer one; it keeps its text.

    The old one holds until `at`, and the new one, whose `valid_from` it is, from then on: exactly
    one of the two holds at any time, unless nobody knows since when the new one holds, which says
    the same and more; `end_predecessors` handles those before them. While `at` lies
    in the future the old one stays active, and ends automatically.
    """
    before = snapshot(old)
    old.status = "superseded" if at <= await clock_of(db) else "active"
    old.superseded_by = new_memory_id
    old.valid_to = min(old.valid_to or at, at)
    old.version += 1
    await db.flush()
    await db.refresh(old)
    return MemoryChange("SUPERSEDE", before, snapshot(old))
