"""SQL that writes the records of changes: history, the gate's decisions, and events.

The events go into the outbox in the same transaction as the change, so that none is lost.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Text,
    cast,
    delete,
    func,
    insert,
    literal,
    literal_column,
    null,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm.attributes import flag_modified

from app.identity.tenants.access import Access
from app.language.ranking.packing import INDEX_COLUMNS
from app.language.text.offload import read_text
from app.memory.memories.errors import HistoryNotFoundError
from app.memory.memories.models import GateDecision, Memory, MemoryHistory
from app.memory.memories.refreshes import pending_graphs, refresh_profiles
from app.memory.memories.searchable import DERIVED_FROM, row_terms
from app.platform.database.base import after, new_id
from app.platform.outbox.models import Event, EventType
from app.platform.outbox.repository import OutboxRepository
from app.platform.work.idempotency import StoredAnswer

NOT_IN_HISTORY = (
    "tenant_id", "content_hash", "embedding", "code", "use_count", "last_used_at", *INDEX_COLUMNS,
)  # fmt: skip

# Texts of SQLAlchemy's own look through their class whenever they are written as JSON.
KEPT: Final = tuple(
    str(column.name) for column in Memory.__table__.columns if column.name not in NOT_IN_HISTORY
)
"""Columns that the history keeps of a memory."""

_NOTHING_REPLACED: Final = dict.fromkeys(("embedding", "embedding_model", *INDEX_COLUMNS))

_ANSWER_NAMES_ONE = text(
    "EXISTS (SELECT 1 FROM regexp_matches(convert_from(idempotency_keys.answer, 'UTF8'), "
    "'mem_[0-9a-f]{32}', 'g') AS found(ids) "
    "WHERE found.ids[1] = ANY(CAST(:memory_ids AS text[])))"
)

ADDED: Final = "ADD"

EVENT_TYPES: Final[Mapping[str, EventType]] = MappingProxyType(
    {
        ADDED: "memory.added",
        "UPDATE": "memory.updated",
        "MERGE": "memory.updated",
        "ARCHIVE": "memory.updated",
        "RESTORE": "memory.updated",
        "SUPERSEDE": "memory.superseded",
        "DELETE": "memory.deleted",
    }
)
"""The type of a webhook event, by the event of the history."""

_EVENT_COLUMNS = (
    "memory_id", "version", "memory_type", "scope", "scope_id", "user_id", "agent_id",
    "session_id", "project_id", "superseded_by",
)  # fmt: skip


class MemoryChange(NamedTuple):
    """One line of the history.

    Args:
        before: the snapshot before it, and `after` the one after.
        replaced: what found the words it replaced, by column; every change of words has it.

    """

    event: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    replaced: Mapping[str, Any] | None = None


def snapshot(row: Memory) -> dict[str, Any]:
    """What the history keeps of a memory: all of it but the vector and its use."""
    kept: dict[str, Any] = {}
    for name in KEPT:
        value = getattr(row, "metadata_" if name == "metadata" else name)
        kept[name] = value.isoformat() if isinstance(value, datetime) else value
    return kept


def without_null(state: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot as it is stored: what is not there is null, which is half of most of them."""
    return {name: value for name, value in state.items() if value is not None}


async def rewrite(
    db: AsyncSession, row: Memory, values: Mapping[str, Any], event: str
) -> MemoryChange | None:
    """Give a locked row new values and its next version; None when nothing differs.

    Args:
        values: by attribute; new words come with `content_hash`, `embedding` and
            `embedding_model`.

    """
    derived = {"content_hash", "embedding", "embedding_model"}
    if all(getattr(row, name) == value for name, value in values.items() if name not in derived):
        return None
    before = snapshot(row)
    replaced = None
    if values.get("content", row.content) != row.content:
        replaced = await _found_by(db, row)
    for name, value in values.items():
        setattr(row, name, value)
    if values.keys() & DERIVED_FROM:
        terms = await read_text(
            len(row.content),
            row_terms,
            row.content,
            row.metadata_,
            row.valid_from,
            row.said_at,
            row.speaker,
        )
        for name, value in terms.items():
            setattr(row, name, value)
        # Written even when it is what it was: without it the words count as unread (revision 0003).
        flag_modified(row, "analyser")
    row.version += 1
    await db.flush()
    await db.refresh(row)
    return MemoryChange(event, before, snapshot(row), replaced)


async def _found_by(db: AsyncSession, row: Memory) -> Mapping[str, Any]:
    """What finds the words of a row, as columns of the history.

    Not as attributes: what is loaded is compared with what is set, and vectors of two models
    cannot be.
    """
    names = ("embedding", "embedding_model", *INDEX_COLUMNS)
    columns = [getattr(Memory, name) for name in names]
    found = await db.execute(
        select(*columns).where(Memory.tenant_id == row.tenant_id, Memory.memory_id == row.memory_id)
    )
    return dict(found.mappings().one())


class RecordRepository:
    """History and verdicts of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access
        self._tenant_id = access.tenant_id

    async def note(
        self,
        changes: Sequence[MemoryChange],
        *,
        actor: str | None,
        reason: str | None = None,
        job_id: str | None = None,
    ) -> None:
        """Write history, one entry per change, publish events and note pending refreshes.

        Args:
            actor: the key that did it, and `job_id` the job.

        """
        lines = [
            {
                "tenant_id": self._tenant_id,
                "history_id": new_id("his"),
                "reason": reason,
                "actor": actor,
                "job_id": job_id,
                **_line(change),
            }
            for change in changes
        ]
        if not lines:
            return
        await self._db.execute(insert(MemoryHistory), lines)
        about = [(change.event, change.after or change.before or {}) for change in changes]
        await self._publish(about, job_id)
        for added in (False, True):
            rows = [row for event, row in about if (event == ADDED) is added]
            refresh_profiles(self._db, self._tenant_id, rows, actor, changed=not added)
        self._refresh_graphs(changes, actor, by_hand=job_id is None)

    def _refresh_graphs(
        self, changes: Sequence[MemoryChange], actor: str | None, *, by_hand: bool
    ) -> None:
        """Note memories that stopped counting, count again or were written by hand; a run of
        extraction writes its own into the graph.
        """
        for event, before, after_, replaced in changes:
            row = after_ or before or {}
            active = row["status"] == "active"
            read = active and (by_hand or event == "RESTORE")
            if read or not active:
                pending = pending_graphs(self._db, self._tenant_id, actor)
                pending.note(row, read=read, reworded=replaced is not None, changed=event != ADDED)

    async def _publish(
        self, changes: Sequence[tuple[str, Mapping[str, Any]]], job_id: str | None
    ) -> None:
        await OutboxRepository(self._db, self._tenant_id).publish(changed(changes, job_id))

    async def note_deletion(
        self,
        memory_ids: Sequence[str],
        *,
        hard: bool,
        actor: str | None,
        reason: str | None,
        job_id: str | None = None,
    ) -> None:
        """Write one entry DELETE for each of these memories before they go, in one statement.

        A soft deletion keeps their content in the entry. A hard one removes every copy of it:
        history, decisions, kept answers. A memory that was deleted softly before publishes no
        second event.
        """
        ids = list(memory_ids)
        await self._publish_deletion(ids, job_id, actor)
        if hard:
            await self._delete_copies(ids)
        whole = func.to_jsonb(literal_column("memories"))
        pairs = (
            func.unnest(cast(ids, ARRAY(Text)), cast([new_id("his") for _ in ids], ARRAY(Text)))
            .table_valued("memory_id", "history_id", name="pairs")
            .render_derived()
        )
        lines = (
            select(
                literal(self._tenant_id),
                pairs.c.history_id,
                Memory.memory_id,
                Memory.user_id,
                literal("DELETE"),
                cast(reason, Text),
                cast(actor, Text),
                cast(job_id, Text),
                cast(null(), JSONB) if hard else whole.op("-")(cast(NOT_IN_HISTORY, ARRAY(Text))),
                Memory.version,
            )
            .join(pairs, pairs.c.memory_id == Memory.memory_id)
            .where(Memory.tenant_id == self._tenant_id)
        )
        names = [
            "tenant_id", "history_id", "memory_id", "user_id", "event", "reason", "actor",
            "job_id", "before", "version",
        ]  # fmt: skip
        await self._db.execute(insert(MemoryHistory).from_select(names, lines))

    async def _publish_deletion(
        self, ids: list[str], job_id: str | None, actor: str | None
    ) -> None:
        gone = await self._db.execute(
            select(*(getattr(Memory, name) for name in (*_EVENT_COLUMNS, "status"))).where(
                Memory.tenant_id == self._tenant_id,
                Memory.memory_id == func.any(cast(ids, ARRAY(Text))),
            )
        )
        every = [dict(row) for row in gone.mappings()]
        for row in every:
            pending_graphs(self._db, self._tenant_id, actor).note(row)
        rows = [row for row in every if row.pop("status") != "deleted"]
        await self._publish([("DELETE", row) for row in rows], job_id)
        refresh_profiles(self._db, self._tenant_id, rows, actor, gone=True)

    async def _delete_copies(self, ids: list[str]) -> None:
        chosen = func.any(cast(ids, ARRAY(Text)))
        await self._db.execute(
            delete(MemoryHistory)
            .where(MemoryHistory.tenant_id == self._tenant_id, MemoryHistory.memory_id == chosen)
            .execution_options(synchronize_session=False)
        )
        await self._db.execute(
            update(GateDecision)
            .where(GateDecision.tenant_id == self._tenant_id, GateDecision.memory_id == chosen)
            .values(content=None, request=None)
            .execution_options(synchronize_session=False)
        )
        # Kept answers: those of these users, and those without a user.
        users = select(Memory.user_id).where(
            Memory.tenant_id == self._tenant_id, Memory.memory_id == chosen
        )
        await self._db.execute(
            delete(StoredAnswer)
            .where(
                StoredAnswer.tenant_id == self._tenant_id,
                or_(StoredAnswer.user_id.in_(users), StoredAnswer.user_id.is_(None)),
                _ANSWER_NAMES_ONE.bindparams(memory_ids=ids),
            )
            .execution_options(synchronize_session=False)
        )

    async def history(
        self, memory_id: str, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[MemoryHistory]:
        """Oldest first, one more than `limit` when another page follows."""
        statement = select(MemoryHistory).where(
            MemoryHistory.tenant_id == self._tenant_id, MemoryHistory.memory_id == memory_id
        )
        rows = await self._db.scalars(
            after(
                statement,
                (MemoryHistory.create_time, MemoryHistory.history_id),
                start=start,
                descending=False,
                limit=limit,
            )
        )
        return rows.all()

    async def entry(self, memory_id: str, history_id: str) -> MemoryHistory:
        """One entry of a memory's history that has a state after it.

        Raises:
            HistoryNotFoundError: there is none of this memory.

        """
        row = await self._db.scalar(
            select(MemoryHistory).where(
                MemoryHistory.tenant_id == self._tenant_id,
                MemoryHistory.memory_id == memory_id,
                MemoryHistory.history_id == history_id,
                MemoryHistory.after.is_not(None),
            )
        )
        if row is None:
            raise HistoryNotFoundError(memory_id, history_id)
        return row

    async def decide(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Record the gate's decisions, and publish an event for each refusal."""
        await self._db.execute(insert(GateDecision), list(rows))
        await OutboxRepository(self._db, self._tenant_id).publish(refusals(rows))


SILENT: Final = {"nothing_found", "not_read"}
"""Codes of messages that nothing was proposed of: no refusal of anything."""


def refusals(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    """An event for each of the gate's decisions that refuses something."""
    return [
        Event("memory.rejected", _refusal(row), user_id=row["user_id"])
        for row in rows
        if row["verdict"] == "rejected" and not SILENT.issuperset(row["codes"])
    ]


def changed(
    changes: Sequence[tuple[str, Mapping[str, Any]]], job_id: str | None = None
) -> list[Event]:
    """An event for each change: that of the history, and the memory it is about."""
    return [
        Event(
            EVENT_TYPES[event],
            {name: about[name] for name in _EVENT_COLUMNS} | {"event": event, "job_id": job_id},
            user_id=about["user_id"],
        )
        for event, about in changes
    ]


def _line(change: MemoryChange) -> dict[str, Any]:
    event, before, after_, replaced = change
    if before and after_ and before["content"] != after_["content"] and replaced is None:
        raise ValueError("a change of words comes with what found those that it replaced")
    about = after_ or before or {}
    return {
        "memory_id": about["memory_id"],
        "user_id": about["user_id"],
        "event": event,
        "before": before and without_null(before),
        "after": after_ and without_null(after_),
        "version": about["version"],
        **(replaced or _NOTHING_REPLACED),
    }


def _refusal(row: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "decision_id", "memory_id", "codes", "scope", "user_id", "agent_id", "session_id",
        "project_id", "job_id",
    )  # fmt: skip
    return {name: row.get(name) for name in names} | {"event": "REJECT"}
