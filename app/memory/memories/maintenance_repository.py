"""SQL for the maintenance of one tenant's memories: what is due for removal, has no search terms
yet, or waits for a vector of the embedder in force.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Text,
    TextClause,
    and_,
    cast,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.repository import VectorRepository
from app.identity.tenants.access import Access
from app.language.ranking.packing import INDEX_COLUMNS
from app.language.text.terms import ANALYSER_VERSION
from app.memory.memories.models import GateDecision, Memory, MemoryHistory
from app.memory.memories.record_repository import MemoryChange, snapshot
from app.memory.memories.repository import compiled
from app.memory.memories.visibility_sql import removable_selection
from app.platform.database.engine import clock_of
from app.platform.work.idempotency import StoredAnswer

_HANDLES = """
SELECT DISTINCT config->>'embedding' AS handle FROM agents
WHERE tenant_id = CAST(:tenant_id AS text) AND config->>'embedding' <> ''
"""

_COUNT_USES = text(
    """
    UPDATE memories SET use_count = memories.use_count + used.count,
        last_used_at = greatest(memories.last_used_at, used.at)
    FROM unnest(CAST(:ids AS text[]), CAST(:counts AS int8[]), CAST(:times AS timestamptz[]))
        AS used(memory_id, count, at)
    WHERE memories.tenant_id = :tenant_id AND memories.memory_id = used.memory_id
        AND memories.status <> 'deleted'
    """
)


class MaintenanceRepository:
    """Maintenance of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def count_uses(
        self, ids: Sequence[str], counts: Sequence[int], times: Sequence[datetime]
    ) -> None:
        """Add uses to memories, in the order of `ids`; deleted ones are left out."""
        values = {"tenant_id": self._tenant_id, "ids": ids, "counts": counts, "times": times}
        await self._db.execute(_COUNT_USES, values)

    def _expired(self) -> ColumnElement[bool]:
        return and_(
            Memory.tenant_id == self._tenant_id,
            Memory.status == "active",
            Memory.expires_at <= func.now(),
        )

    async def count_expired(self) -> int:
        """How many memories have expired and are not archived yet."""
        statement = select(func.count()).select_from(Memory).where(self._expired())
        return int(await self._db.scalar(statement) or 0)

    async def archive_expired(self, limit: int) -> list[MemoryChange]:
        """Archive the first `limit` of them in one statement; the changes to record."""
        return await self.archive(self._expired(), Memory.expires_at, limit)

    async def archive(
        self, chosen: ColumnElement[bool], order: Any, limit: int
    ) -> list[MemoryChange]:
        """Archive the first `limit` of the chosen in this order; the changes to record.

        Rows that another transaction is changing are left out.
        """
        rows = await self._db.scalars(
            select(Memory)
            .where(Memory.tenant_id == self._tenant_id, chosen)
            .order_by(order)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        before = {row.memory_id: snapshot(row) for row in rows}
        changed = await self._db.execute(
            update(Memory)
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.memory_id == func.any(cast(list(before), ARRAY(Text))),
            )
            .values(status="archived", version=Memory.version + 1)
            .returning(Memory.memory_id, Memory.status, Memory.version, Memory.update_time)
            .execution_options(synchronize_session=False)
        )
        return [
            MemoryChange(
                "ARCHIVE",
                before[memory_id],
                before[memory_id]
                | {"status": status, "version": version, "update_time": time.isoformat()},
            )
            for memory_id, status, version, time in changed
        ]

    def _gone(self, age: timedelta) -> ColumnElement[bool]:
        long_ago = func.now() - age
        return and_(
            Memory.tenant_id == self._tenant_id,
            or_(
                and_(Memory.status == "deleted", Memory.deleted_at <= long_ago),
                and_(Memory.status == "archived", Memory.expires_at <= long_ago),
            ),
        )

    async def count_gone(self, age: timedelta) -> int:
        """How many memories were deleted, or expired and were archived, at least `age` ago."""
        statement = select(func.count()).select_from(Memory).where(self._gone(age))
        return int(await self._db.scalar(statement) or 0)

    async def lock_gone(self, age: timedelta, limit: int) -> Sequence[str]:
        """Ids of the oldest of them, locked; those that another purge holds are left out."""
        statement = (
            select(Memory.memory_id)
            .where(self._gone(age))
            .order_by(func.coalesce(Memory.deleted_at, Memory.expires_at))
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return (await self._db.scalars(statement)).all()

    async def lock_next_selected(
        self,
        access: Access,
        equal: Mapping[str, Any],
        filters: Mapping[str, Any] | None,
        *,
        knowledge: bool,
        before: datetime,
        after: str,
        limit: int,
    ) -> tuple[str | None, Sequence[str]]:
        """The next memories by id of a selection that is deleted in batches, locked.

        Args:
            access: the caller; only memories that it may remove.
            equal: column to the value it must have.
            filters: the grammar of `filters.py`.
            knowledge: whether what all users of an agent share is among them.
            before: when it was asked for; what came later is left out.
            after: the last id of the batch before, empty for the first.
            limit: most ids of the batch.

        Returns:
            The last id looked at, None when there was none; and those that, locked, were
            still selected.

        """
        conditions: list[ColumnElement[bool] | TextClause] = [
            *removable_selection(access, equal, filters),
            Memory.create_time <= before,
            *(getattr(Memory, name) == value for name, value in equal.items()),
        ]
        if not knowledge:
            conditions.append(Memory.scope != "agent")
        if filters:
            conditions.append(compiled(filters))
        chosen = select(Memory.memory_id).where(*conditions).order_by(Memory.memory_id)
        ids = (await self._db.scalars(chosen.where(Memory.memory_id > after).limit(limit))).all()
        if not ids:
            return None, []
        # Locked in a second step: one that another transaction deletes first is left out, and
        # must not end the batch early.
        among = Memory.memory_id == func.any(cast(list(ids), ARRAY(Text)))
        locked = await self._db.scalars(chosen.where(among).with_for_update())
        return ids[-1], locked.all()

    def _refused(self, long_ago: Any) -> ColumnElement[bool]:
        return and_(
            GateDecision.tenant_id == self._tenant_id,
            GateDecision.create_time <= long_ago,
            GateDecision.verdict == "rejected",
        )

    async def count_refused(self, age: timedelta) -> int:
        """How many decisions refused a statement at least `age` ago."""
        refused = self._refused(func.now() - age)
        statement = select(func.count()).select_from(GateDecision).where(refused)
        return int(await self._db.scalar(statement) or 0)

    async def delete_refused(self, age: timedelta, limit: int) -> int:
        """Remove some of them, and return how many."""
        chosen = (
            select(GateDecision.decision_id)
            .where(self._refused(await clock_of(self._db) - age))
            .order_by(GateDecision.create_time)
            .limit(limit)
            .with_for_update(skip_locked=True)
            .cte("chosen")
        )
        rows = await self._db.execute(
            delete(GateDecision)
            .where(
                GateDecision.tenant_id == self._tenant_id,
                GateDecision.decision_id.in_(select(chosen.c.decision_id)),
            )
            .returning(literal(1))
            .execution_options(synchronize_session=False)
        )
        return len(rows.all())

    def _expired_keys(self, now: Any) -> ColumnElement[bool]:
        return and_(StoredAnswer.tenant_id == self._tenant_id, StoredAnswer.expires_at <= now)

    async def count_expired_keys(self) -> int:
        """How many idempotency keys have expired."""
        expired = self._expired_keys(func.now())
        statement = select(func.count()).select_from(StoredAnswer).where(expired)
        return int(await self._db.scalar(statement) or 0)

    async def delete_expired_keys(self, limit: int) -> int:
        """Delete at most `limit` of them; how many it were."""
        expired = self._expired_keys(await clock_of(self._db))
        keys = (StoredAnswer.key_id, StoredAnswer.idempotency_key)
        chosen = (select(*keys).where(expired).limit(limit).with_for_update(skip_locked=True)).cte(
            "chosen"
        )
        rows = await self._db.scalars(
            delete(StoredAnswer)
            .where(
                expired,
                StoredAnswer.key_id == chosen.c.key_id,
                StoredAnswer.idempotency_key == chosen.c.idempotency_key,
            )
            .returning(literal(1))
            .execution_options(synchronize_session=False)
        )
        return len(rows.all())

    async def agent_handles(self) -> list[str]:
        """Embedders that agents of the tenant name."""
        rows = await self._db.scalars(text(_HANDLES), {"tenant_id": self._tenant_id})
        return list(rows)

    async def count_unread(self) -> int:
        """How many memories no analyser has read, or an older one."""
        statement = select(func.count()).select_from(Memory).where(*self._unread())
        return int(await self._db.scalar(statement) or 0)

    async def unread(self, limit: int) -> list[dict[str, Any]]:
        """Some of them: what they say, and their version."""
        columns = (
            Memory.memory_id, Memory.version, Memory.content,
            Memory.metadata_.label("metadata_"), Memory.valid_from, Memory.said_at, Memory.speaker,
        )  # fmt: skip
        rows = await self._db.execute(select(*columns).where(*self._unread()).limit(limit))
        return [dict(row) for row in rows.mappings()]

    async def write_terms(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Give rows of `unread` their terms; how many had not changed meanwhile."""
        written = 0
        for row in rows:
            result: Any = await self._db.execute(
                update(Memory)
                .where(
                    Memory.tenant_id == self._tenant_id,
                    Memory.memory_id == row["memory_id"],
                    Memory.version == row["version"],
                    Memory.status != "deleted",
                )
                .values({name: row[name] for name in INDEX_COLUMNS})
                .execution_options(synchronize_session=False)
            )
            written += result.rowcount
        return written

    async def count_unread_past(self) -> int:
        """How many replaced contents no analyser has read, or an older one."""
        statement = select(func.count()).select_from(MemoryHistory).where(*self._unread_past())
        return int(await self._db.scalar(statement) or 0)

    async def unread_past(self, limit: int) -> list[dict[str, Any]]:
        """Some of them: the entry of the history, and what the memory was `before`."""
        columns = (MemoryHistory.history_id, MemoryHistory.before)
        rows = await self._db.execute(select(*columns).where(*self._unread_past()).limit(limit))
        return [dict(row) for row in rows.mappings()]

    async def write_past_terms(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Give entries of `unread_past` their terms; how many still waited for them."""
        written = 0
        for row in rows:
            result: Any = await self._db.execute(
                update(MemoryHistory)
                .where(MemoryHistory.history_id == row["history_id"], *self._unread_past())
                .values({name: row[name] for name in INDEX_COLUMNS})
                .execution_options(synchronize_session=False)
            )
            written += result.rowcount
        return written

    def _unread_past(self) -> tuple[ColumnElement[bool], ...]:
        return (
            MemoryHistory.tenant_id == self._tenant_id,
            # Only words that a change replaced have a vector there.
            MemoryHistory.embedding.is_not(None),
            MemoryHistory.before.is_not(None),
            or_(MemoryHistory.analyser.is_(None), MemoryHistory.analyser < ANALYSER_VERSION),
        )

    def _unread(self) -> tuple[ColumnElement[bool], ...]:
        return (
            Memory.tenant_id == self._tenant_id,
            or_(Memory.analyser.is_(None), Memory.analyser < ANALYSER_VERSION),
            Memory.status != "deleted",
        )


class MemoryVectorRepository(VectorRepository):
    """Vectors of one tenant's memories; messages have theirs read with them."""

    # The same choice as in `embedders.py`, for many rows at once: the agent's embedder, else the
    # tenant's. `in_force` holds only what this deployment can resolve, so the rest stays as it is.
    WAITING = """
FROM memories m
LEFT JOIN agents a ON a.tenant_id = CAST(:tenant_id AS text) AND a.agent_id = m.agent_id
JOIN unnest(CAST(:handles AS text[]), CAST(:models AS text[])) AS in_force(handle, model)
  ON in_force.handle = coalesce(nullif(a.config->>'embedding', ''), CAST(:home AS text))
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.status <> 'deleted'
  AND m.embedding_model <> in_force.model
"""
    KEY = "m.memory_id"
    COLUMNS = (
        "m.memory_id AS id, m.content, CAST(m.version AS text) AS version, "
        "m.embedding_model AS old, in_force.model AS new"
    )
    # A change meanwhile has embedded the row anew, or it waits for the next round.
    REPLACE = """
UPDATE memories m SET embedding = CAST(v.vector AS vector), embedding_model = v.new
FROM unnest(
    CAST(:ids AS text[]), CAST(:versions AS text[]), CAST(:old AS text[]),
    CAST(:new AS text[]), CAST(:vectors AS text[])
) AS v(memory_id, version, old, new, vector)
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.memory_id = v.memory_id
  AND m.version = CAST(v.version AS bigint) AND m.embedding_model = v.old AND m.status <> 'deleted'
"""
    PRESENT = """
EXISTS (
    SELECT 1 FROM memories m WHERE m.tenant_id = CAST(:tenant_id AS text)
      AND m.embedding_model = listed.model AND m.status <> 'deleted'
) OR EXISTS (
    SELECT 1 FROM messages m WHERE m.tenant_id = CAST(:tenant_id AS text)
      AND m.embedding_model = listed.model
)
"""
