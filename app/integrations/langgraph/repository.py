"""SQL that puts LangGraph's checkpoints and writes into one session."""

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    DateTime,
    Integer,
    LargeBinary,
    ScalarSelect,
    String,
    and_,
    any_,
    bindparam,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.integrations.langgraph.pages import SaverCheckpointNotFoundError
from app.platform.database.engine import clock_of
from app.platform.database.failures import conflicts
from app.prompting.checkpoints.models import SaverCheckpoint, SaverChunk, SaverWrite


class Look(NamedTuple):
    """What is stored already.

    Args:
        parent: digests of the parent's values by channel; None without the checkpoint.
        own: likewise those of the checkpoint itself.
        chunks: the stored chunks.
        staged: those of them that nothing has yet.
        size: bytes of the stored chunks.

    """

    parent: dict[str, str] | None
    own: dict[str, str] | None
    chunks: frozenset[bytes]
    staged: frozenset[bytes]
    size: int


# One round trip, however many values are new.
_PUT = text(
    """
    WITH new_chunks AS (
        INSERT INTO saver_chunks (tenant_id, session_id, digest, content)
        SELECT :tenant_id, :session_id, digest, content
        FROM unnest(CAST(:chunk_digests AS bytea[]), CAST(:chunk_contents AS bytea[]))
            AS new (digest, content)
        ON CONFLICT DO NOTHING
    ), new_values AS (
        INSERT INTO saver_values (tenant_id, session_id, digest, type, chunks)
        SELECT :tenant_id, :session_id, digest, type,
            (CAST(:parts AS bytea[]))[value_start:value_end]
        FROM unnest(
            CAST(:value_digests AS bytea[]), CAST(:value_types AS text[]),
            CAST(:value_starts AS int[]), CAST(:value_ends AS int[])
        ) AS new (digest, type, value_start, value_end)
        ON CONFLICT DO NOTHING
    )
    INSERT INTO saver_checkpoints (
        tenant_id, session_id, namespace, checkpoint_id, thread_id, parent_id, run_id, metadata,
        channels, type, checkpoint
    ) VALUES (
        :tenant_id, :session_id, :namespace, :checkpoint_id, :thread_id, :parent_id, :run_id,
        CAST(:metadata AS jsonb), CAST(:channels AS jsonb), :type, :checkpoint
    )
    ON CONFLICT (tenant_id, session_id, namespace, checkpoint_id) DO UPDATE SET
        thread_id = excluded.thread_id, parent_id = excluded.parent_id,
        run_id = excluded.run_id, metadata = excluded.metadata, channels = excluded.channels,
        type = excluded.type, checkpoint = excluded.checkpoint
    """
).bindparams(
    bindparam("tenant_id", type_=String),
    bindparam("session_id", type_=String),
    bindparam("thread_id", type_=String),
    bindparam("parent_id", type_=String),
    bindparam("run_id", type_=String),
    bindparam("chunk_digests", type_=ARRAY(LargeBinary)),
    bindparam("chunk_contents", type_=ARRAY(LargeBinary)),
    bindparam("parts", type_=ARRAY(LargeBinary)),
    bindparam("value_digests", type_=ARRAY(LargeBinary)),
    bindparam("value_types", type_=ARRAY(String)),
    bindparam("value_starts", type_=ARRAY(Integer)),
    bindparam("value_ends", type_=ARRAY(Integer)),
    bindparam("checkpoint", type_=LargeBinary),
)

_OWN = (bindparam("tenant_id", type_=String), bindparam("session_id", type_=String))

_STAGE = text(
    """
    INSERT INTO saver_chunks AS stored (tenant_id, session_id, digest, content, staged_at)
    SELECT :tenant_id, :session_id, digest, content, :staged_at
    FROM unnest(CAST(:chunk_digests AS bytea[]), CAST(:chunk_contents AS bytea[]))
        AS new (digest, content)
    ON CONFLICT (tenant_id, session_id, digest) DO UPDATE SET staged_at = excluded.staged_at
        WHERE stored.staged_at IS NOT NULL
    RETURNING (xmax = 0) AS new
    """
).bindparams(
    *_OWN,
    bindparam("chunk_digests", type_=ARRAY(LargeBinary)),
    bindparam("chunk_contents", type_=ARRAY(LargeBinary)),
    bindparam("staged_at", type_=DateTime(timezone=True)),
)

_SETTLE = text(
    """
    UPDATE saver_chunks SET staged_at = NULL
    WHERE tenant_id = :tenant_id AND session_id = :session_id AND staged_at IS NOT NULL
        AND digest = ANY (CAST(:staged AS bytea[]))
    """
).bindparams(*_OWN, bindparam("staged", type_=ARRAY(LargeBinary)))

# What a replaced write had may belong to nothing afterwards: housekeeping finds out.
_STAGE_REPLACED, _SETTLE_WRITTEN = (
    text(
        f"""
        UPDATE saver_chunks SET staged_at = {staged_at}
        WHERE tenant_id = :tenant_id AND session_id = :session_id {chunks} AND digest IN (
                SELECT unnest(written.chunks) FROM saver_writes AS written
                WHERE written.tenant_id = :tenant_id AND written.session_id = :session_id
                    AND written.namespace = :namespace
                    AND written.checkpoint_id = :checkpoint_id
                    AND written.task_id = ANY (CAST(:task_ids AS text[])) {writes}
            )
        """
    ).bindparams(
        *_OWN,
        bindparam("namespace", type_=String),
        bindparam("checkpoint_id", type_=String),
        bindparam("task_ids", type_=ARRAY(String)),
    )
    for staged_at, chunks, writes in (
        ("CAST(:staged_at AS timestamptz)", "", "AND written.idx < 0"),
        ("NULL", "AND staged_at IS NOT NULL", ""),
    )
)


class SaverRepository:
    """Checkpoints of one session, which the caller has found and, to write, locked."""

    def __init__(self, db: AsyncSession, tenant_id: str, session_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id
        self._session_id = session_id
        self._own = {"tenant_id": tenant_id, "session_id": session_id}

    def _of(self, table: type[SaverCheckpoint | SaverChunk]) -> ColumnElement[bool]:
        return and_(table.tenant_id == self._tenant_id, table.session_id == self._session_id)

    async def look(
        self, namespace: str, checkpoint_id: str, parent_id: str | None, chunks: Collection[bytes]
    ) -> Look:
        """What a put finds: channels of its parent and of itself, and which chunks are stored."""

        def channels(of: str | None) -> ScalarSelect[dict[str, str]]:
            return (
                select(SaverCheckpoint.channels)
                .where(
                    self._of(SaverCheckpoint),
                    SaverCheckpoint.namespace == namespace,
                    SaverCheckpoint.checkpoint_id == of,
                )
                .scalar_subquery()
            )

        held = bindparam(None, list(chunks), type_=ARRAY(LargeBinary))
        wanted = and_(self._of(SaverChunk), SaverChunk.digest == any_(held))
        stored = (
            select(
                func.array_agg(SaverChunk.digest).label("digests"),
                func.sum(func.octet_length(SaverChunk.content)).label("size"),
            )
            .where(wanted)
            .subquery()
        )
        staged = select(SaverChunk.digest).where(wanted, SaverChunk.staged_at.is_not(None))
        row = (
            await self._db.execute(
                select(
                    channels(parent_id).label("parent"),
                    channels(checkpoint_id).label("own"),
                    stored.c.digests,
                    func.array(staged.scalar_subquery()).label("staged"),
                    stored.c.size,
                )
            )
        ).one()
        return Look(
            row.parent,
            row.own,
            frozenset(row.digests or ()),
            frozenset(row.staged),
            int(row.size or 0),
        )

    async def staged_bytes(self) -> int:
        """Bytes of the chunks that nothing has yet."""
        size = func.sum(func.octet_length(SaverChunk.content))
        staged = select(size).where(self._of(SaverChunk), SaverChunk.staged_at.is_not(None))
        return int(await self._db.scalar(staged) or 0)

    async def stage(self, chunks: Mapping[bytes, bytes]) -> int:
        """Store chunks ahead of what will have them; how many are new. Safe to repeat."""
        values = {
            **self._own,
            "chunk_digests": list(chunks),
            "chunk_contents": list(chunks.values()),
            "staged_at": await clock_of(self._db),
        }
        rows = await self._db.execute(_STAGE, values)
        return sum(row.new for row in rows)

    async def settle(self, staged: Collection[bytes]) -> None:
        """Note that something has these chunks now."""
        if staged:
            await self._db.execute(_SETTLE, {**self._own, "staged": list(staged)})

    async def put(
        self,
        namespace: str,
        checkpoint_id: str,
        columns: Mapping[str, Any],
        values: Mapping[bytes, tuple[str, Sequence[bytes]]],
        chunks: Mapping[bytes, bytes],
    ) -> None:
        """Store a checkpoint with its values and chunks; a checkpoint with its id is replaced.

        Args:
            namespace: namespace of the checkpoint.
            checkpoint_id: its id.
            columns: its other columns, `metadata` and `channels` as JSON text.
            values: type and chunks by digest; stored values stay as they are.
            chunks: content by digest; stored chunks stay as they are.

        """
        ends = list(accumulate(len(parts) for _, parts in values.values()))
        await self._db.execute(
            _PUT,
            {
                **self._own,
                "namespace": namespace,
                "checkpoint_id": checkpoint_id,
                **columns,
                "chunk_digests": list(chunks),
                "chunk_contents": list(chunks.values()),
                "value_digests": list(values),
                "value_types": [kind for kind, _ in values.values()],
                "value_starts": [1, *(end + 1 for end in ends)][: len(ends)],
                "value_ends": ends,
                "parts": [part for _, parts in values.values() for part in parts],
            },
        )

    async def put_writes(
        self, namespace: str, checkpoint_id: str, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Store writes of a checkpoint, at most one per task and index; safe to repeat.

        At an index below 0 a later write replaces the earlier, otherwise the earlier stays.

        Raises:
            SaverCheckpointNotFoundError: the checkpoint is not there.

        """
        own = {**self._own, "namespace": namespace, "checkpoint_id": checkpoint_id}
        tasks = {**own, "task_ids": sorted({row["task_id"] for row in rows})}
        first = [{**own, **row} for row in rows if row["idx"] >= 0]
        last = [{**own, **row} for row in rows if row["idx"] < 0]
        gone = SaverCheckpointNotFoundError(self._session_id, checkpoint_id)
        with conflicts({"saver_writes_fk_saver_checkpoints": gone}):
            if first:
                await self._db.execute(insert(SaverWrite).on_conflict_do_nothing(), first)
            if last:
                staged_at = await clock_of(self._db)
                await self._db.execute(_STAGE_REPLACED, {**tasks, "staged_at": staged_at})
                statement = insert(SaverWrite)
                replaced = {
                    name: statement.excluded[name]
                    for name in ("task_path", "channel", "type", "value", "chunks")
                }
                await self._db.execute(
                    statement.on_conflict_do_update(constraint="saver_writes_pkey", set_=replaced),
                    last,
                )
        if last or any(row["chunks"] is not None for row in first):
            await self._db.execute(_SETTLE_WRITTEN, tasks)
