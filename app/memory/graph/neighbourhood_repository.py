"""SQL for walks through the graph: neighbours, paths, the memories around.

Relations never cross buckets, so that a caller who may see its start may see where it leads;
what is shown is checked by `visible` once more. A walk is bounded in depth, in the edges it
follows from one entity and in the rows it reads, and says when a bound was met.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    CTE,
    Row,
    Select,
    String,
    and_,
    cast,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.memory.graph.models import GraphMention, GraphRelation
from app.memory.graph.relation_repository import has_readable_source, holds, known, visible
from app.memory.memories.models import Memory
from app.memory.memories.repository import existing
from app.platform.database.base import Id

FAN: Final = 500
"""Relations that a walk follows from one entity."""
MOST_VISITED: Final = 10_000
"""Rows of a walk that are read; a third step from a crowd ends here."""
MOST_EDGES: Final = 1_000


@dataclass(frozen=True, slots=True)
class When:
    """Which relations count: those that held at `as_of`, by what was known at `known_at`."""

    as_of: datetime
    known_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Walk:
    """Entities within reach, with the fewest steps to each; whether a bound was met."""

    hops: Mapping[str, int]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Path:
    """From one entity to another: those on the way, and the relations between them."""

    entity_ids: tuple[str, ...]
    relation_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NearMemory:
    """A memory that speaks of an entity, and how many relations away that is from those asked."""

    memory_id: str
    entity_id: str
    hops: int


class GraphNeighbourhood:
    """Walks through the graph that a caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access
        self._tenant_id = access.tenant_id

    async def walk(
        self,
        entity_ids: Sequence[str],
        *,
        depth: int,
        limit: int,
        when: When,
        relation: str | None = None,
    ) -> Walk:
        """The nearest `limit` entities around those of `entity_ids`, which are at 0 steps."""
        walk = self._reach(entity_ids, depth=depth, when=when, relation=relation)
        read = select(walk).limit(MOST_VISITED + 1).subquery("read")
        found = await self._db.execute(
            select(
                read.c.entity_id,
                func.min(read.c.hops).label("hops"),
                func.bool_or(read.c.over).label("over"),
                func.sum(func.count()).over().label("visited"),
            )
            .group_by(read.c.entity_id)
            .order_by(literal_column("hops"), read.c.entity_id)
            .limit(limit + 1)
        )
        rows: Sequence[Row[Any]] = found.all()
        over = any(row.over or row.visited > MOST_VISITED for row in rows)
        return Walk(
            {row.entity_id: int(row.hops) for row in rows[:limit]}, over or len(rows) > limit
        )

    async def between(
        self, entity_ids: Sequence[str], *, when: When, relation: str | None = None
    ) -> Sequence[GraphRelation]:
        """Relations among entities, at most MOST_EDGES + 1."""
        statement = select(GraphRelation).where(
            visible(self._access, GraphRelation),
            has_readable_source(self._access),
            GraphRelation.source_id.in_(entity_ids),
            GraphRelation.destination_id.in_(entity_ids),
            known(when.known_at),
            holds(when.as_of),
        )
        if relation is not None:
            statement = statement.where(GraphRelation.relation == relation)
        rows = await self._db.scalars(
            statement.order_by(GraphRelation.relation_id).limit(MOST_EDGES + 1)
        )
        return rows.all()

    async def paths(
        self, first: str, last: str, *, depth: int, limit: int, when: When
    ) -> tuple[Sequence[Path], bool]:
        """The shortest paths between two entities, none through one twice; whether a bound was
        met, so that there may be more.
        """
        walk = self._ways(first, last, depth=depth, when=when)
        read = select(walk).limit(MOST_VISITED + 1).cte("read").prefix_with("MATERIALIZED")
        near = self._edges(literal(last), when, relation=None)
        ends = select(near.subquery("last")).cte("ends").prefix_with("MATERIALIZED")
        ways = (
            select(
                read.c.entities,
                read.c.relations,
                func.array_append(read.c.relations, ends.c.relation_id).label("all_relations"),
            )
            .select_from(read.join(ends, ends.c.other == read.c.entity_id))
            .order_by(read.c.hops, literal_column("all_relations"))
            .limit(limit + 1)
            .subquery("found")
        )
        # A row in any case: that there may be more is said of nothing too.
        extent = select(
            select(func.count()).select_from(read).scalar_subquery().label("visited"),
            select(func.count()).select_from(ends).scalar_subquery().label("fan"),
            select(func.bool_or(read.c.over)).scalar_subquery().label("over"),
        ).subquery("bounds")
        found = await self._db.execute(
            select(extent, ways.c.entities, ways.c.all_relations).select_from(
                extent.outerjoin(ways, true())
            )
        )
        rows: Sequence[Row[Any]] = found.all()
        bounds = rows[0]
        paths = [
            Path((*row.entities, last), tuple(row.all_relations)) for row in rows if row.entities
        ]
        truncated = bounds.visited > MOST_VISITED or bounds.fan > FAN or bounds.over
        return paths[:limit], bool(truncated or len(paths) > limit)

    async def relations(
        self, relation_ids: Sequence[str], *, when: When
    ) -> Mapping[str, GraphRelation]:
        """Relations as they were known, by id."""
        rows = await self._db.scalars(
            select(GraphRelation).where(
                visible(self._access, GraphRelation),
                has_readable_source(self._access),
                GraphRelation.relation_id.in_(relation_ids),
                known(when.known_at),
            )
        )
        return {row.relation_id: row for row in rows}

    async def memories(
        self, entity_ids: Sequence[str], *, depth: int, limit: int, as_of: datetime
    ) -> Sequence[NearMemory]:
        """Active memories that speak of entities and of their neighbours, the nearest first."""
        if not entity_ids:
            return []
        walk = self._reach(entity_ids, depth=depth, when=When(as_of), relation=None)
        read = select(walk).limit(MOST_VISITED).subquery("read")
        found = await self._db.execute(
            select(
                GraphMention.memory_id,
                func.min(read.c.hops).label("hops"),
                func.min(read.c.entity_id).label("entity_id"),
            )
            .join(
                GraphMention,
                and_(
                    GraphMention.tenant_id == self._tenant_id,
                    GraphMention.entity_id == read.c.entity_id,
                ),
            )
            .where(
                exists().where(
                    existing(self._access),
                    Memory.memory_id == GraphMention.memory_id,
                    Memory.status == "active",
                )
            )
            .group_by(GraphMention.memory_id)
            .order_by(literal_column("hops"), GraphMention.memory_id.desc())
            .limit(limit)
        )
        return [NearMemory(row.memory_id, row.entity_id, int(row.hops)) for row in found]

    def _reach(
        self, entity_ids: Sequence[str], *, depth: int, when: When, relation: str | None
    ) -> CTE:
        """Rows of entity, steps, and whether more relations lead on than are followed."""
        seeds = func.unnest(cast(list(entity_ids), ARRAY(Id))).column_valued("seed")
        walk = select(
            seeds.label("entity_id"),
            literal_column("0").label("hops"),
            literal(False).label("over"),
        ).cte("walk", recursive=True)
        edge = self._edges(walk.c.entity_id, when, relation=relation, of=walk).lateral("edge")
        # UNION, so that a circle is walked once per step and not once per way.
        return walk.union(
            select(edge.c.other, walk.c.hops + 1, edge.c.place > FAN)
            .select_from(walk.join(edge, true()))
            .where(walk.c.hops < depth)
        )

    def _ways(self, first: str, last: str, *, depth: int, when: When) -> CTE:
        """Ways from `first` that are one step shorter than `depth` and do not reach `last`."""
        # What array_append returns has no length.
        ids = ARRAY(String(collation="C"))
        walk = select(
            cast(literal(first), Id).label("entity_id"),
            cast(array([literal(first)]), ids).label("entities"),
            cast(array([], type_=Id), ids).label("relations"),
            literal_column("0").label("hops"),
            literal(False).label("over"),
        ).cte("ways", recursive=True)
        edge = self._edges(walk.c.entity_id, when, relation=None, of=walk).lateral("edge")
        return walk.union_all(
            select(
                edge.c.other,
                func.array_append(walk.c.entities, edge.c.other),
                func.array_append(walk.c.relations, edge.c.relation_id),
                walk.c.hops + 1,
                or_(walk.c.over, edge.c.place > FAN),
            )
            .select_from(walk.join(edge, true()))
            .where(
                walk.c.hops < depth - 1,
                edge.c.other != last,
                edge.c.other != func.all(walk.c.entities),
            )
        )

    def _edges(
        self, entity_id: Any, when: When, *, relation: str | None, of: CTE | None = None
    ) -> Select[Any]:
        """Relations of one entity, perhaps `of` a walk, from both of its sides; each side by its
        own index.
        """
        conditions = [
            GraphRelation.tenant_id == self._tenant_id,
            known(when.known_at),
            holds(when.as_of),
            has_readable_source(self._access),
        ]
        if relation is not None:
            conditions.append(GraphRelation.relation == relation)
        here, there = GraphRelation.source_id, GraphRelation.destination_id
        sides = union_all(
            *(
                select(far.label("other"), GraphRelation.relation_id.label("relation_id"))
                .where(*conditions, near == entity_id)
                .correlate(of)
                .limit(FAN + 1)
                for near, far in ((here, there), (there, here))
            )
        ).subquery("side")
        return select(
            sides.c.other, sides.c.relation_id, func.row_number().over().label("place")
        ).limit(FAN + 1)
