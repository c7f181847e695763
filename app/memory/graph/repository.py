"""SQL for entities: their names and vectors, and the memories that mention them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    and_,
    any_,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from app.identity.agents.repository import VectorRepository
from app.identity.tenants.access import Access
from app.memory.graph.errors import AliasNotFoundError, EntityMergedError, EntityNotFoundError
from app.memory.graph.models import GraphAlias, GraphEntity, GraphMention
from app.memory.graph.relation_repository import is_mentioned, visible
from app.memory.graph.statements import GraphOwner
from app.memory.memories.models import Memory
from app.memory.memories.repository import existing
from app.platform.database.base import after


def graph_owner(row: Any) -> GraphOwner:
    """The bucket of an entity, a relation or a change."""
    return GraphOwner(row.scope, row.scope_id, row.user_id, row.agent_id, row.project_id)


def _among(column: InstrumentedAttribute[str], keys: Iterable[str]) -> ColumnElement[bool]:
    """One value, however many keys: of several hundred memories there are more than a statement
    may have values.
    """
    return column == any_(literal(list(keys), ARRAY(Text)))


class EntityRepository:
    """Entities a caller may see, and all of one bucket. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access
        self._tenant_id = access.tenant_id

    def _visible(self) -> Select[GraphEntity]:
        return select(GraphEntity).where(
            visible(self._access, GraphEntity), is_mentioned(self._access)
        )

    async def get(self, entity_id: str, *, lock: bool = False) -> GraphEntity:
        """Raises EntityNotFoundError."""
        statement = self._visible().where(GraphEntity.entity_id == entity_id)
        if lock:
            # As it is behind the lock, not as it was read before.
            statement = statement.with_for_update().execution_options(populate_existing=True)
        row = await self._db.scalar(statement)
        if row is None:
            raise EntityNotFoundError(entity_id)
        return row

    async def get_live(self, entity_id: str, *, lock: bool = False) -> GraphEntity:
        """Raises EntityNotFoundError, EntityMergedError."""
        row = await self.get(entity_id, lock=lock)
        if row.merged_into is not None:
            raise EntityMergedError(entity_id, row.merged_into)
        return row

    async def get_all(self, entity_ids: Iterable[str]) -> dict[str, GraphEntity]:
        """Those of them in graphs of the caller's, by id: sides of relations that it may read."""
        rows = await self._db.scalars(
            select(GraphEntity).where(
                visible(self._access, GraphEntity), GraphEntity.entity_id.in_(list(entity_ids))
            )
        )
        return {row.entity_id: row for row in rows}

    async def list_entities(
        self,
        *,
        equal: Mapping[str, Any],
        contains: str | None,
        start: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[GraphEntity]:
        """Newest first, one more than `limit` when another page follows.

        Args:
            equal: column to the value it must have.
            contains: a piece of a key of its name, or of an alias.

        """
        statement = self._visible().where(
            GraphEntity.merged_into.is_(None),
            *(getattr(GraphEntity, name) == value for name, value in equal.items()),
        )
        if contains is not None:
            alias = select(GraphAlias.entity_id).where(
                GraphAlias.tenant_id == self._tenant_id,
                GraphAlias.alias_key.contains(contains, autoescape=True),
            )
            statement = statement.where(
                or_(
                    GraphEntity.name_key.contains(contains, autoescape=True),
                    GraphEntity.entity_id.in_(alias),
                )
            )
        rows = await self._db.scalars(
            after(
                statement,
                (GraphEntity.create_time, GraphEntity.entity_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def named(
        self, keys: Sequence[str], *, equal: Mapping[str, Any], limit: int
    ) -> Sequence[GraphEntity]:
        """Entities with one of these names or aliases, the longest name first."""
        conditions = (
            visible(self._access, GraphEntity),
            is_mentioned(self._access),
            GraphEntity.merged_into.is_(None),
            *(getattr(GraphEntity, name) == value for name, value in equal.items()),
        )
        by_alias = select(GraphAlias.entity_id).where(
            GraphAlias.tenant_id == self._tenant_id, GraphAlias.alias_key.in_(keys)
        )
        by_name = select(GraphEntity.entity_id).where(
            GraphEntity.tenant_id == self._tenant_id, GraphEntity.name_key.in_(keys)
        )
        rows = await self._db.scalars(
            select(GraphEntity)
            .where(*conditions, GraphEntity.entity_id.in_(by_name.union(by_alias)))
            .order_by(func.length(GraphEntity.name_key).desc(), GraphEntity.entity_id)
            .limit(limit)
        )
        return rows.all()

    # One bucket, without the caller's view: a run writes for the users it has read.

    def _in(self, owner: GraphOwner) -> ColumnElement[bool]:
        return and_(
            GraphEntity.tenant_id == self._tenant_id,
            GraphEntity.scope_id == owner.scope_id,
            GraphEntity.scope == owner.scope,
            GraphEntity.user_id.is_not_distinct_from(owner.user_id),
            GraphEntity.agent_id.is_not_distinct_from(owner.agent_id),
            GraphEntity.merged_into.is_(None),
        )

    async def by_keys(self, owner: GraphOwner, keys: Iterable[str]) -> dict[str, GraphEntity]:
        """Entities of a bucket by the key of their name."""
        rows = await self._db.scalars(
            select(GraphEntity).where(self._in(owner), _among(GraphEntity.name_key, keys))
        )
        return {row.name_key: row for row in rows}

    async def by_aliases(
        self, owner: GraphOwner, keys: Iterable[str]
    ) -> Sequence[tuple[str, GraphEntity]]:
        """Aliases among `keys` with the entities of a bucket that have them, the oldest first."""
        rows = await self._db.execute(
            select(GraphAlias.alias_key, GraphEntity)
            .join(
                GraphEntity,
                and_(
                    GraphEntity.tenant_id == self._tenant_id,
                    GraphEntity.entity_id == GraphAlias.entity_id,
                ),
            )
            .where(
                GraphAlias.tenant_id == self._tenant_id,
                _among(GraphAlias.alias_key, keys),
                self._in(owner),
            )
            .order_by(GraphEntity.create_time, GraphEntity.entity_id)
        )
        return [(key, row) for key, row in rows.all()]

    async def nearest(
        self, owner: GraphOwner, entity_type: str, model: str, vector: Any, *, limit: int
    ) -> Sequence[tuple[GraphEntity, float]]:
        """Entities of one type in a bucket with their cosine distance, the nearest first."""
        distance = GraphEntity.embedding.cosine_distance(vector)
        rows = await self._db.execute(
            select(GraphEntity, distance.label("distance"))
            .where(
                self._in(owner),
                GraphEntity.entity_type == entity_type,
                GraphEntity.embedding_model == model,
                GraphEntity.embedding.is_not(None),
            )
            .order_by(distance, GraphEntity.entity_id)
            .limit(limit)
        )
        return [(row, float(far)) for row, far in rows.all()]

    async def insert(self, rows: Sequence[Mapping[str, Any]]) -> set[str]:
        """Insert entities; ids of those that were new."""
        if not rows:
            return set()
        made = await self._db.scalars(
            insert(GraphEntity)
            .values([{"tenant_id": self._tenant_id, **row} for row in rows])
            .on_conflict_do_nothing()
            .returning(GraphEntity.entity_id)
        )
        return set(made)

    async def note_aliases(self, names: Iterable[tuple[str, str, str]]) -> int:
        """Add other names of entities; returns how many are new.

        Args:
            names: the id, the key and the alias as it is written.

        """
        values = [
            {
                "tenant_id": self._tenant_id,
                "entity_id": entity_id,
                "alias_key": key,
                "alias": alias,
            }
            for entity_id, key, alias in names
        ]
        if not values:
            return 0
        made = await self._db.scalars(
            insert(GraphAlias)
            .values(values)
            .on_conflict_do_nothing()
            .returning(GraphAlias.entity_id)
        )
        return len(made.all())

    async def remove_alias(self, entity_id: str, key: str) -> None:
        """Remove an alias.

        Raises:
            AliasNotFoundError: the entity has none with this key.

        """
        gone = await self._db.scalar(
            delete(GraphAlias)
            .where(
                GraphAlias.tenant_id == self._tenant_id,
                GraphAlias.entity_id == entity_id,
                GraphAlias.alias_key == key,
            )
            .returning(GraphAlias.alias_key)
        )
        if gone is None:
            raise AliasNotFoundError(entity_id)

    async def aliases(self, entity_ids: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Other names of entities, the oldest first."""
        rows = await self._db.execute(
            select(GraphAlias.entity_id, GraphAlias.alias)
            .where(
                GraphAlias.tenant_id == self._tenant_id,
                GraphAlias.entity_id.in_(list(entity_ids)),
            )
            .order_by(GraphAlias.create_time, GraphAlias.alias_key)
        )
        found = defaultdict(list)
        for entity_id, alias in rows.all():
            found[entity_id].append(alias)
        return found

    async def note_mentions(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Write which existing memories mention which entities; safe to repeat."""
        wanted = sorted(set(pairs))
        if not wanted:
            return
        columns = [literal(list(values), ARRAY(Text)) for values in zip(*wanted, strict=True)]
        mentioned = (
            func.unnest(*columns)
            .table_valued("memory_id", "entity_id", name="mentioned")
            .render_derived()
        )
        await self._db.execute(
            insert(GraphMention)
            .from_select(
                ["tenant_id", "memory_id", "entity_id"],
                select(literal(self._tenant_id), Memory.memory_id, mentioned.c.entity_id)
                .select_from(mentioned)
                .join(Memory, Memory.memory_id == mentioned.c.memory_id)
                .where(Memory.tenant_id == self._tenant_id),
            )
            .on_conflict_do_nothing()
        )

    async def count_mentions(self, entity_ids: Iterable[str]) -> dict[str, int]:
        """How many memories the caller may see speak of each."""
        rows = await self._db.execute(
            select(GraphMention.entity_id, func.count())
            .where(
                GraphMention.tenant_id == self._tenant_id,
                GraphMention.entity_id.in_(list(entity_ids)),
                exists().where(existing(self._access), Memory.memory_id == GraphMention.memory_id),
            )
            .group_by(GraphMention.entity_id)
        )
        return {entity_id: int(count) for entity_id, count in rows.all()}

    async def memories_of(self, entity_id: str, *, start: str | None, limit: int) -> Sequence[str]:
        """Ids of memories the caller may see that speak of an entity, the newest first; one more
        than `limit` when another page follows.
        """
        statement = (
            select(GraphMention.memory_id)
            .where(
                GraphMention.tenant_id == self._tenant_id,
                GraphMention.entity_id == entity_id,
                exists().where(existing(self._access), Memory.memory_id == GraphMention.memory_id),
            )
            .order_by(GraphMention.memory_id.desc())
            .limit(limit + 1)
        )
        if start is not None:
            statement = statement.where(GraphMention.memory_id < start)
        return (await self._db.scalars(statement)).all()

    async def missing_memories(self, memory_ids: Iterable[str]) -> set[str]:
        """Those that the caller may not see, or that are not there."""
        wanted = set(memory_ids)
        if not wanted:
            return set()
        there = await self._db.scalars(
            select(Memory.memory_id).where(existing(self._access), Memory.memory_id.in_(wanted))
        )
        return wanted - set(there)


class EntityVectorRepository(VectorRepository):
    """Vectors of the names of one tenant's entities."""

    # An entity that users share is named by runs of several agents, so that any model in force for
    # one of them may be right, and only vectors of none of them are replaced. An entity without a
    # vector was named by a caller, and is found by its name.
    WAITING = """
FROM graph_entities e
LEFT JOIN agents a ON a.tenant_id = CAST(:tenant_id AS text) AND a.agent_id = e.agent_id
JOIN unnest(CAST(:handles AS text[]), CAST(:models AS text[])) AS in_force(handle, model)
  ON in_force.handle = coalesce(nullif(a.config->>'embedding', ''), CAST(:home AS text))
WHERE e.tenant_id = CAST(:tenant_id AS text) AND e.embedding_model IS NOT NULL
  AND e.embedding_model <> ALL (CAST(:models AS text[]))
"""
    KEY = "e.entity_id"
    # Its name is all that its vector was made of.
    COLUMNS = (
        "e.entity_id AS id, e.name AS content, e.name AS version, "
        "e.embedding_model AS old, in_force.model AS new"
    )
    # An entity renamed meanwhile is looked at again in the next round.
    REPLACE = """
WITH locked AS MATERIALIZED (
    SELECT entity_id FROM graph_entities
    WHERE tenant_id = CAST(:tenant_id AS text) AND entity_id = ANY (CAST(:ids AS text[]))
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE graph_entities e SET embedding = CAST(v.vector AS vector), embedding_model = v.new
FROM unnest(
    CAST(:ids AS text[]), CAST(:versions AS text[]), CAST(:old AS text[]), CAST(:new AS text[]),
    CAST(:vectors AS text[])
) AS v(entity_id, name, old, new, vector), locked
WHERE e.tenant_id = CAST(:tenant_id AS text) AND e.entity_id = v.entity_id
  AND locked.entity_id = v.entity_id AND e.embedding_model = v.old AND e.name = v.name
"""
    PRESENT = """
EXISTS (
    SELECT 1 FROM graph_entities e
    WHERE e.tenant_id = CAST(:tenant_id AS text) AND e.embedding_model = listed.model
)
"""
