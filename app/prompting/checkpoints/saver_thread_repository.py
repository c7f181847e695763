"""SQL for whole threads of LangGraph: deleting, copying, and what pruning must keep."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    DateTime,
    String,
    TextClause,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.models import Session
from app.platform.database.engine import clock_of
from app.prompting.checkpoints.models import (
    SaverCheckpoint,
    SaverChunk,
    SaverValue,
    SaverWrite,
)

OUTERMOST = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A checkpoint with the fields that pruning needs.

    Args:
        channels: the channels whose value is stored with it.
        rebuilt: the channels whose value is rebuilt from the writes since an earlier checkpoint
            that stored it.
        outer: the checkpoint of the outermost graph in which this graph was called.

    """

    namespace: str
    checkpoint_id: str
    parent_id: str | None
    channels: frozenset[str]
    rebuilt: frozenset[str]
    outer: str | None


def kept(steps: Sequence[Step]) -> set[tuple[str, str]]:
    """Namespaces and ids of the newest of each namespace, and of what it is rebuilt from.

    A namespace that one call of a subgraph had (LangGraph ends it with the id of the task) goes
    with the checkpoint of the outermost graph that made the call.
    """
    by_id = {(step.namespace, step.checkpoint_id): step for step in steps}
    newest: dict[str, Step] = {}
    for step in steps:
        known = newest.get(step.namespace)
        if known is None or known.checkpoint_id < step.checkpoint_id:
            newest[step.namespace] = step
    keep = _needed(newest[OUTERMOST], by_id) if OUTERMOST in newest else set()
    for namespace, head in newest.items():
        called_in = (OUTERMOST, head.outer or "")
        is_call = ":" in namespace
        if namespace != OUTERMOST and not (
            is_call and called_in in by_id and called_in not in keep
        ):
            keep |= _needed(head, by_id)
    return keep


def _needed(head: Step, by_id: dict[tuple[str, str], Step]) -> set[tuple[str, str]]:
    """The head and its ancestors, back to where every channel has a value."""
    found: set[tuple[str, str]] = set()
    open_channels = set(head.rebuilt)
    step: Step | None = head
    while step is not None and (step.namespace, step.checkpoint_id) not in found:
        found.add((step.namespace, step.checkpoint_id))
        open_channels -= step.channels
        if not open_channels or step.parent_id is None:
            break
        step = by_id.get((step.namespace, step.parent_id))
    return found


DELTA_COUNTERS = "counters_since_delta_snapshot"
"""Key of LangGraph's metadata: channels whose value is rebuilt from earlier writes."""

# Statistics say of a thread that has grown since the last ANALYZE that it has one row or none.
# A nested loop is planned for that, and looks at every pair of thousands.
HASHED = text("SET LOCAL enable_nestloop = off")

REMOVE = text(
    """
    DELETE FROM saver_checkpoints AS step
    USING unnest(CAST(:namespaces AS text[]), CAST(:checkpoint_ids AS text[]))
        AS gone (namespace, checkpoint_id)
    WHERE step.tenant_id = :tenant_id AND step.session_id = :session_id
        AND step.namespace = gone.namespace AND step.checkpoint_id = gone.checkpoint_id
    RETURNING step.checkpoint_id
    """
).bindparams(
    bindparam("tenant_id", type_=String),
    bindparam("session_id", type_=String),
    bindparam("namespaces", type_=ARRAY(String)),
    bindparam("checkpoint_ids", type_=ARRAY(String)),
)

REMOVE_RUNS = text(
    """
    DELETE FROM saver_checkpoints
    WHERE tenant_id = :tenant_id AND session_id = :session_id
        AND run_id = ANY (CAST(:run_ids AS text[]))
    RETURNING checkpoint_id
    """
).bindparams(
    bindparam("tenant_id", type_=String),
    bindparam("session_id", type_=String),
    bindparam("run_ids", type_=ARRAY(String)),
)

LET_GO = text(
    """
    UPDATE saver_checkpoints AS child SET parent_id = NULL
    WHERE child.tenant_id = :tenant_id AND child.session_id = :session_id
        AND child.parent_id IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM saver_checkpoints AS parent
            WHERE parent.tenant_id = :tenant_id AND parent.session_id = :session_id
                AND parent.namespace = child.namespace
                AND parent.checkpoint_id = child.parent_id
        )
    """
).bindparams(bindparam("tenant_id", type_=String), bindparam("session_id", type_=String))

SWEEP_VALUES = text(
    """
    WITH held AS MATERIALIZED (
        SELECT DISTINCT decode(channel.value, 'hex') AS digest
        FROM saver_checkpoints AS step
            CROSS JOIN LATERAL jsonb_each_text(step.channels) AS channel
        WHERE step.tenant_id = :tenant_id AND step.session_id = :session_id
    )
    DELETE FROM saver_values AS stored
    WHERE stored.tenant_id = :tenant_id AND stored.session_id = :session_id
        AND NOT EXISTS (SELECT FROM held WHERE held.digest = stored.digest)
    """
).bindparams(bindparam("tenant_id", type_=String), bindparam("session_id", type_=String))

SWEEP_CHUNKS = text(
    """
    WITH held AS MATERIALIZED (
        SELECT part.digest
        FROM saver_values AS stored CROSS JOIN LATERAL unnest(stored.chunks) AS part (digest)
        WHERE stored.tenant_id = :tenant_id AND stored.session_id = :session_id
        UNION
        SELECT part.digest
        FROM saver_writes AS stored CROSS JOIN LATERAL unnest(stored.chunks) AS part (digest)
        WHERE stored.tenant_id = :tenant_id AND stored.session_id = :session_id
    )
    DELETE FROM saver_chunks AS stored
    WHERE stored.tenant_id = :tenant_id AND stored.session_id = :session_id
        AND stored.staged_at IS NULL
        AND NOT EXISTS (SELECT FROM held WHERE held.digest = stored.digest)
    """
).bindparams(bindparam("tenant_id", type_=String), bindparam("session_id", type_=String))

SETTLE = text(
    """
    UPDATE saver_chunks SET staged_at = NULL
    WHERE tenant_id = :tenant_id AND session_id = :session_id AND staged_at < :before
    RETURNING digest
    """
).bindparams(
    bindparam("tenant_id", type_=String),
    bindparam("session_id", type_=String),
    bindparam("before", type_=DateTime(timezone=True)),
)


async def find_abandoned(db: AsyncSession, tenant_id: str, age: timedelta) -> str | None:
    """A session, locked, with parts of a checkpoint that has not come for `age`; None without.

    Locked sessions are passed over until the next time.
    """
    abandoned = exists().where(
        SaverChunk.tenant_id == tenant_id,
        SaverChunk.session_id == Session.session_id,
        SaverChunk.staged_at < func.now() - age,
    )
    return await db.scalar(
        select(Session.session_id)
        .where(Session.tenant_id == tenant_id, abandoned)
        .limit(1)
        .with_for_update(skip_locked=True)
    )


async def count_abandoned(db: AsyncSession, tenant_id: str, age: timedelta) -> int:
    """How many chunks came ahead of something that has not come for `age`."""
    statement = select(func.count()).select_from(SaverChunk)
    mine = (SaverChunk.tenant_id == tenant_id, SaverChunk.staged_at < func.now() - age)
    return int(await db.scalar(statement.where(*mine)) or 0)


class SaverThreadRepository:
    """Everything that LangGraph stored in a session, which the caller has found and locked."""

    def __init__(self, db: AsyncSession, tenant_id: str, session_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id
        self._session_id = session_id
        self._own: dict[str, Any] = {"tenant_id": tenant_id, "session_id": session_id}

    def _of(
        self, table: type[SaverCheckpoint | SaverValue | SaverChunk | SaverWrite]
    ) -> ColumnElement[bool]:
        return and_(table.tenant_id == self._tenant_id, table.session_id == self._session_id)

    async def steps(self) -> list[Step]:
        """Every checkpoint of the session, as far as pruning looks at it."""
        rows = await self._db.execute(
            select(
                SaverCheckpoint.namespace,
                SaverCheckpoint.checkpoint_id,
                SaverCheckpoint.parent_id,
                SaverCheckpoint.channels,
                SaverCheckpoint.metadata_[DELTA_COUNTERS],
                SaverCheckpoint.metadata_["parents"][""].astext,
            ).where(self._of(SaverCheckpoint))
        )
        return [
            Step(
                namespace,
                checkpoint_id,
                parent_id,
                frozenset(channels),
                frozenset(counters if isinstance(counters, dict) else ()),
                outer,
            )
            for namespace, checkpoint_id, parent_id, channels, counters, outer in rows
        ]

    async def remove(self, gone: Collection[tuple[str, str]]) -> int:
        """Delete checkpoints by namespace and id, with their writes; how many there were.

        A checkpoint whose parent is deleted then begins a thread. Values and chunks that are no
        longer needed are deleted too.
        """
        if not gone:
            return 0
        named = {
            "namespaces": [namespace for namespace, _ in gone],
            "checkpoint_ids": [checkpoint_id for _, checkpoint_id in gone],
        }
        return await self._remove(REMOVE, named)

    async def remove_runs(self, run_ids: Collection[str]) -> int:
        """As `remove`, but what runs have put."""
        return await self._remove(REMOVE_RUNS, {"run_ids": list(run_ids)})

    async def _remove(self, statement: TextClause, named: Mapping[str, Any]) -> int:
        await self._db.execute(HASHED)
        removed = len((await self._db.execute(statement, {**self._own, **named})).all())
        if removed:
            await self._db.execute(LET_GO, self._own)
            await self._sweep()
        return removed

    async def remove_abandoned(self, age: timedelta) -> int:
        """Delete chunks that came ahead of something that has not come for `age`; how many.

        A chunk that something has after all stays.
        """
        before = await clock_of(self._db) - age
        abandoned = len((await self._db.execute(SETTLE, {**self._own, "before": before})).all())
        if abandoned:
            await self._db.execute(HASHED)
            await self._db.execute(SWEEP_CHUNKS, self._own)
        return abandoned

    async def sweep(self) -> None:
        """Delete values that no checkpoint has any more, and chunks that no value has."""
        await self._db.execute(HASHED)
        await self._sweep()

    async def _sweep(self) -> None:
        await self._db.execute(SWEEP_VALUES, self._own)
        await self._db.execute(SWEEP_CHUNKS, self._own)

    async def clear(self) -> int:
        """Delete everything of the session here; how many checkpoints that were."""
        result = await self._db.execute(
            delete(SaverCheckpoint)
            .where(self._of(SaverCheckpoint))
            .returning(SaverCheckpoint.checkpoint_id)
        )
        for table in (SaverValue, SaverChunk):
            await self._db.execute(delete(table).where(self._of(table)))
        return len(result.all())

    async def copy_to(self, target_id: str, thread_id: str | None) -> int:
        """Copy everything to the session `target_id`; how many checkpoints were new there.

        Args:
            target_id: the session.
            thread_id: LangGraph's id of the copy, where it is not that of the session.

        Safe to repeat: what the target has stays as it is.
        """
        copied = 0
        for table in (SaverChunk, SaverValue, SaverCheckpoint, SaverWrite):
            named: dict[str, str | None] = {
                "tenant_id": self._tenant_id,
                "session_id": target_id,
            }
            if table is SaverCheckpoint:
                named["thread_id"] = thread_id
            columns = [column for column in table.__table__.columns if column.name not in named]
            rows_of = self._of(table)
            if table is SaverChunk:
                rows_of = and_(rows_of, SaverChunk.staged_at.is_(None))
            statement = (
                insert(table)
                .from_select(
                    [*named, *(column.name for column in columns)],
                    select(*(literal(value, String) for value in named.values()), *columns).where(
                        rows_of
                    ),
                )
                .on_conflict_do_nothing()
                .returning(table.session_id)
            )
            rows = (await self._db.execute(statement)).all()
            if table is SaverCheckpoint:
                copied = len(rows)
        return copied
