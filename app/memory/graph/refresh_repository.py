"""SQL that refreshes one bucket's graph from its memories.

Relations of an archived or deleted memory are closed, not removed, so that they come back with it.
A memory that was removed for good leaves no row behind: the names would reveal its content.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import CursorResult, delete, exists, func, or_, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.memory.graph.models import GraphEntity, GraphMention, GraphRelation
from app.memory.graph.relation_repository import RelationTimeline
from app.memory.memories.models import Memory
from app.memory.memories.refreshes import Bucket

GONE: Final = "no memory that counts says so any more"
BACK: Final = "a memory that says so counts again"
REWORDED: Final = "the memory that said so says something else"

_SUPPORTED: Final = """
EXISTS (
    SELECT FROM memories m
    WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (r.memory_ids)
        AND NOT (m.scope = 'project' AND m.visibility = 'owner_only')
        AND (m.status = 'active' OR m.status = 'superseded' AND EXISTS (
            SELECT FROM memory_history h JOIN memories n ON n.tenant_id = :tenant_id
                AND n.memory_id = h.memory_id AND n.status = 'active'
            WHERE h.tenant_id = :tenant_id AND h.memory_id = m.superseded_by
                AND h.event = 'MERGE'))
)
"""
"""Whether a memory that counts says so; one that was merged holds in other words."""

_IN_BUCKET: Final = "r.tenant_id = :tenant_id AND r.{owner} = :scope_id AND r.scope = :scope"

_UNSUPPORTED: Final = """
SELECT r.relation_id FROM graph_relations r
WHERE {within} AND r.known_to IS NULL AND (r.valid_to IS NULL OR r.valid_to > :now)
    AND cardinality(r.memory_ids) > 0 AND NOT {supported}
"""

# As they were before they were closed, unless another says the same by now.
_SUPPORTED_AGAIN: Final = """
SELECT r.relation_id, was.valid_to FROM graph_relations r JOIN graph_relations was
    ON was.tenant_id = :tenant_id AND was.relation_id = r.relation_id
    AND was.version = r.version - 1
WHERE {within} AND r.known_to IS NULL AND r.reason = :gone AND {supported}
    AND (was.valid_to IS NULL OR was.valid_to > :now) AND NOT EXISTS (
        SELECT FROM graph_relations twin
        WHERE twin.tenant_id = :tenant_id AND twin.source_id = r.source_id
            AND twin.relation = r.relation AND twin.destination_id = r.destination_id
            AND twin.known_to IS NULL AND twin.valid_to IS NULL)
"""

_FORGOTTEN: Final = """
DELETE FROM graph_relations r
WHERE {within} AND cardinality(r.memory_ids) > 0 AND NOT EXISTS (
    SELECT FROM graph_relations v
    WHERE v.tenant_id = :tenant_id AND v.relation_id = r.relation_id AND (
        cardinality(v.memory_ids) = 0 OR EXISTS (
            SELECT FROM memories m
            WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (v.memory_ids))))
"""

_GONE_MENTIONS: Final = """
DELETE FROM graph_mentions g USING graph_entities r, memories m
WHERE {within} AND g.tenant_id = :tenant_id AND g.entity_id = r.entity_id
    AND m.tenant_id = :tenant_id AND m.memory_id = g.memory_id
    AND (m.status = 'deleted' OR m.scope = 'project' AND m.visibility = 'owner_only')
"""

# A name given by hand leaves the old one as an alias; merges and splits are kept as changes.
_UNMENTIONED: Final = """
DELETE FROM graph_entities r
WHERE {within} AND r.merged_into IS NULL AND r.metadata = '{{}}'
    AND NOT EXISTS (SELECT FROM graph_mentions g
        WHERE g.tenant_id = :tenant_id AND g.entity_id = r.entity_id)
    AND NOT EXISTS (SELECT FROM graph_relations e
        WHERE e.tenant_id = :tenant_id AND e.source_id = r.entity_id)
    AND NOT EXISTS (SELECT FROM graph_relations e
        WHERE e.tenant_id = :tenant_id AND e.destination_id = r.entity_id)
    AND NOT EXISTS (SELECT FROM graph_entities e
        WHERE e.tenant_id = :tenant_id AND e.merged_into = r.entity_id)
    AND NOT (r.version > 1 AND EXISTS (SELECT FROM graph_aliases a
        WHERE a.tenant_id = :tenant_id AND a.entity_id = r.entity_id))
    AND NOT EXISTS (SELECT FROM graph_changes c
        WHERE c.tenant_id = :tenant_id AND r.entity_id = ANY (c.entity_ids))
"""


class GraphRefresh:
    """One bucket of one tenant, under its lock. Never begins or ends a transaction."""

    def __init__(
        self, db: AsyncSession, tenant_id: str, bucket: Bucket, timeline: RelationTimeline
    ) -> None:
        self._db = db
        self._timeline = timeline
        self._tenant_id = tenant_id
        scope, scope_id = bucket
        self._values = {"tenant_id": tenant_id, "scope": scope, "scope_id": scope_id}
        self._within = _IN_BUCKET.format(owner=f"{scope}_id")

    async def is_empty(self) -> bool:
        """Whether this graph has no entity, and so no relation and no mention."""
        return not await self._db.scalar(
            select(
                exists().where(
                    GraphEntity.tenant_id == self._tenant_id,
                    GraphEntity.scope == self._values["scope"],
                    GraphEntity.scope_id == self._values["scope_id"],
                )
            )
        )

    async def readable(self, memory_ids: Sequence[str]) -> Sequence[Memory]:
        """Memories that count, of which the graph may speak, the oldest first."""
        rows = await self._db.scalars(
            select(Memory)
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.memory_id == func.any(list(memory_ids)),
                Memory.scope == self._values["scope"],
                Memory.scope_id == self._values["scope_id"],
                Memory.status == "active",
                or_(Memory.scope != "project", Memory.visibility != "owner_only"),
            )
            .order_by(Memory.create_time, Memory.memory_id)
        )
        return rows.all()

    async def drop_reworded(self, memory_ids: Sequence[str], now: datetime) -> int:
        """Take memories whose content changed out of relations and mentions; returns how many
        relations were closed, as no other memory supports them.
        """
        if not memory_ids:
            return 0
        closed = 0
        said = aliased(GraphMention)
        mentioned = select(said.entity_id).where(
            said.tenant_id == self._tenant_id, said.memory_id == func.any(list(memory_ids))
        )
        rows = await self._db.scalars(
            select(GraphRelation).where(
                GraphRelation.tenant_id == self._tenant_id,
                GraphRelation.known_to.is_(None),
                or_(GraphRelation.valid_to.is_(None), GraphRelation.valid_to > now),
                GraphRelation.source_id.in_(mentioned),
                GraphRelation.memory_ids.overlap(list(memory_ids)),
            )
        )
        for row in rows.all():
            left = [memory_id for memory_id in row.memory_ids if memory_id not in memory_ids]
            changes: dict[str, Any] = {"memory_ids": left}
            if not left:
                changes = {"valid_to": max(now, row.valid_from or now)}
                closed += 1
            self._timeline.revise(row, changes, REWORDED)
        await self._timeline.flush()
        await self._db.execute(
            delete(GraphMention).where(
                GraphMention.tenant_id == self._tenant_id,
                GraphMention.memory_id == func.any(list(memory_ids)),
            )
        )
        return closed

    async def close(self, now: datetime) -> int:
        """End relations that no memory that counts supports any more; returns how many."""
        ids = [row.relation_id for row in await self._found(_UNSUPPORTED, now=now)]
        for row in await self._known(ids):
            self._timeline.revise(row, {"valid_to": max(now, row.valid_from or now)}, GONE)
        await self._timeline.flush()
        return len(ids)

    async def reopen(self, now: datetime) -> int:
        """Reopen relations whose memory counts again; returns how many."""
        ends = {
            row.relation_id: row.valid_to
            for row in await self._found(_SUPPORTED_AGAIN, now=now, gone=GONE)
        }
        taken: set[tuple[str, str, str]] = set()
        for row in await self._known(list(ends)):
            triple = (row.source_id, row.relation, row.destination_id)
            if triple not in taken:
                taken.add(triple)
                self._timeline.revise(row, {"valid_to": ends[row.relation_id]}, BACK)
        await self._timeline.flush()
        return len(taken)

    async def forget(self) -> dict[str, int]:
        """Remove relations, mentions and entities without support; how many of each."""
        counts = {}
        for name, statement in (
            ("relations", _FORGOTTEN), ("mentions", _GONE_MENTIONS), ("entities", _UNMENTIONED),
        ):  # fmt: skip
            done = await self._db.execute(text(self._formatted(statement)), self._values)
            counts[name] = done.rowcount if isinstance(done, CursorResult) else 0
        return counts

    async def _known(self, relation_ids: Sequence[str]) -> Sequence[GraphRelation]:
        rows = await self._db.scalars(
            select(GraphRelation)
            .where(
                GraphRelation.tenant_id == self._tenant_id,
                GraphRelation.relation_id == func.any(list(relation_ids)),
                GraphRelation.known_to.is_(None),
            )
            .order_by(GraphRelation.relation_id)
        )
        return rows.all()

    async def _found(self, statement: str, **values: Any) -> Sequence[Any]:
        return (
            await self._db.execute(text(self._formatted(statement)), self._values | values)
        ).all()

    def _formatted(self, statement: str) -> str:
        return statement.format(within=self._within, supported=_SUPPORTED)
