"""What of the graph a caller may see (one definition, for entities, relations and changes), and SQL
for relations through two times: when something held, and while we thought so.

Every way to change a relation leads through here: a version is never rewritten but in `known_to`,
the next one says what we think since. So the answer to "where did she live in May, as we knew it in
June" stays the same, whatever we learn.

Of the memories that support a relation, at least one must exist and be readable by the caller; an
entity needs a readable memory that mentions it, a visible relation, or an edit by a caller.

The condition is that of memories (`memories/visibility_sql.py`) without sessions and `owner_only`,
which make no graph. A key restricted to a user sees the rows of that user, of the projects the user
is a member of, and of agents. A key restricted to an agent sees the rows of that agent, and what
all agents share about the users at home with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, true, tuple_, union
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.projects.repository import visible_project_ids
from app.identity.tenants.access import Access
from app.identity.users.repository import visible_user_ids
from app.memory.graph.errors import RelationNotFoundError, RelationTakenError
from app.memory.graph.models import GraphChange, GraphEntity, GraphMention, GraphRelation
from app.memory.graph.statements import GraphOwner
from app.memory.memories.models import Memory
from app.memory.memories.repository import existing
from app.platform.database.base import after, new_id
from app.platform.database.failures import conflicts

Placed = type[GraphEntity] | type[GraphRelation] | type[GraphChange]


def visible(access: Access, table: Placed) -> ColumnElement[bool]:
    """The condition, with the tenant."""
    mine = table.tenant_id == access.tenant_id
    if not access.restricted:
        return and_(mine, true())
    private = and_(table.scope == "user", table.user_id.in_(visible_user_ids(access)))
    shared = and_(table.scope == "project", table.project_id.in_(visible_project_ids(access)))
    if access.agent_id is None:
        return and_(mine, or_(private, shared, table.scope == "agent"))
    fitting = or_(table.agent_id == access.agent_id, table.agent_id.is_(None))
    knowledge = and_(table.scope == "agent", table.scope_id == access.agent_id)
    return and_(mine, or_(knowledge, and_(fitting, or_(private, shared))))


def has_readable_source(access: Access) -> ColumnElement[bool]:
    """Whether the caller may read one of a relation's memories, or it was written without any."""
    return or_(
        func.cardinality(GraphRelation.memory_ids) == 0,
        exists(
            select(Memory.memory_id)
            .where(existing(access), Memory.memory_id == func.any(GraphRelation.memory_ids))
            .correlate(GraphRelation)
        ),
    )


def is_mentioned(access: Access) -> ColumnElement[bool]:
    """Whether anything that the caller may read mentions an entity."""
    mentioned = (
        select(GraphMention.memory_id)
        .join(Memory, Memory.memory_id == GraphMention.memory_id)
        .where(
            GraphMention.tenant_id == access.tenant_id,
            GraphMention.entity_id == GraphEntity.entity_id,
            existing(access),
        )
    )
    joined = (
        select(GraphRelation.relation_id).where(
            GraphRelation.tenant_id == access.tenant_id,
            side == GraphEntity.entity_id,
            has_readable_source(access),
        )
        for side in (GraphRelation.source_id, GraphRelation.destination_id)
    )
    regrouped = select(GraphChange.change_id).where(
        GraphChange.tenant_id == access.tenant_id,
        GraphEntity.entity_id == func.any(GraphChange.entity_ids),
    )
    return or_(
        GraphEntity.merged_into.is_not(None),
        *(exists(source.correlate(GraphEntity)) for source in (mentioned, *joined, regrouped)),
    )


_CARRIED = (
    "tenant_id", "scope", "scope_id", "user_id", "agent_id", "project_id", "relation_id",
    "source_id", "relation", "destination_id", "confidence", "evidence", "memory_ids",
    "valid_from", "valid_to",
)  # fmt: skip


def known(at: datetime | None) -> ColumnElement[bool]:
    """What was known at a time, or is now."""
    if at is None:
        return GraphRelation.known_to.is_(None)
    return and_(
        GraphRelation.known_from <= at,
        or_(GraphRelation.known_to.is_(None), GraphRelation.known_to > at),
    )


def holds(at: datetime) -> ColumnElement[bool]:
    """What holds at a time; the end of a period is no longer in it."""
    return and_(
        or_(GraphRelation.valid_from.is_(None), GraphRelation.valid_from <= at),
        or_(GraphRelation.valid_to.is_(None), GraphRelation.valid_to > at),
    )


class RelationTimeline:
    """Relations a caller may see, and how they change. Never begins or ends a transaction.

    What changes is kept until `flush`, so that a run writes its versions in two statements.
    """

    def __init__(
        self,
        db: AsyncSession,
        access: Access,
        *,
        now: datetime,
        actor: str | None = None,
        job_id: str | None = None,
    ) -> None:
        self._db = db
        self._access = access
        self._tenant_id = access.tenant_id
        self._now = now
        self._by = {"actor": actor, "job_id": job_id}
        self._pending: list[GraphRelation] = []

    async def known_of(self, pairs: Iterable[tuple[str, str]]) -> Sequence[GraphRelation]:
        """What is known now of subjects and relations, the oldest first."""
        rows = await self._db.scalars(
            select(GraphRelation)
            .where(
                GraphRelation.tenant_id == self._tenant_id,
                GraphRelation.known_to.is_(None),
                tuple_(GraphRelation.source_id, GraphRelation.relation).in_(list(pairs)),
            )
            .order_by(GraphRelation.known_from, GraphRelation.relation_id)
        )
        return rows.all()

    async def supported_by(self, memory_ids: Sequence[str]) -> Sequence[GraphRelation]:
        """Known relations that only these memories support; found by their mentions."""
        mentioned = select(GraphMention.entity_id).where(
            GraphMention.tenant_id == self._tenant_id,
            GraphMention.memory_id == func.any(list(memory_ids)),
        )
        rows = await self._db.scalars(
            select(GraphRelation).where(
                GraphRelation.tenant_id == self._tenant_id,
                GraphRelation.known_to.is_(None),
                GraphRelation.source_id.in_(mentioned),
                GraphRelation.memory_ids != [],
                GraphRelation.memory_ids.contained_by(list(memory_ids)),
            )
        )
        return rows.all()

    async def get(self, relation_id: str, *, lock: bool = False) -> GraphRelation:
        """The version that is known now.

        Raises:
            RelationNotFoundError: there is none for this caller.

        """
        statement = select(GraphRelation).where(
            visible(self._access, GraphRelation),
            has_readable_source(self._access),
            GraphRelation.relation_id == relation_id,
            GraphRelation.known_to.is_(None),
        )
        if lock:
            # As it is behind the lock, not as it was read before.
            statement = statement.with_for_update().execution_options(populate_existing=True)
        row = await self._db.scalar(statement)
        if row is None:
            raise RelationNotFoundError(relation_id)
        return row

    async def history(
        self, relation_id: str, *, start: int | None, limit: int
    ) -> Sequence[GraphRelation]:
        """Versions, the newest first, one more than `limit` when another page follows.

        Raises:
            RelationNotFoundError: there is none, and this is the first page.

        """
        statement = select(GraphRelation).where(
            visible(self._access, GraphRelation),
            has_readable_source(self._access),
            GraphRelation.relation_id == relation_id,
        )
        if start is not None:
            statement = statement.where(GraphRelation.version < start)
        rows = await self._db.scalars(
            statement.order_by(GraphRelation.version.desc()).limit(limit + 1)
        )
        found = rows.all()
        if not found and start is None:
            raise RelationNotFoundError(relation_id)
        return found

    async def list_relations(
        self,
        *,
        equal: Mapping[str, Any],
        entity_id: str | None,
        known_at: datetime | None,
        as_of: datetime | None,
        start: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[GraphRelation]:
        """Newest first, one more than `limit` when another page follows.

        Args:
            equal: column to the value it must have.
            entity_id: on one of the two sides.
            known_at: by what was known then; now when left out.
            as_of: what holds then; whenever it held when left out.

        """
        statement = select(GraphRelation).where(
            visible(self._access, GraphRelation),
            has_readable_source(self._access),
            known(known_at),
            *(getattr(GraphRelation, name) == value for name, value in equal.items()),
        )
        if as_of is not None:
            statement = statement.where(holds(as_of))
        if entity_id is not None:
            # Each side by its own index.
            ends = union(
                *(
                    select(GraphRelation.relation_id).where(
                        GraphRelation.tenant_id == self._tenant_id, known(known_at), side
                    )
                    for side in (
                        GraphRelation.source_id == entity_id,
                        GraphRelation.destination_id == entity_id,
                    )
                )
            )
            statement = statement.where(GraphRelation.relation_id.in_(ends))
        rows = await self._db.scalars(
            after(
                statement,
                (GraphRelation.known_from, GraphRelation.relation_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    def add(self, owner: GraphOwner, **columns: Any) -> GraphRelation:
        """A new relation, known from now on."""
        row = GraphRelation(
            tenant_id=self._tenant_id,
            scope=owner.scope,
            scope_id=owner.scope_id,
            user_id=owner.user_id,
            agent_id=owner.agent_id,
            project_id=owner.project_id,
            relation_id=new_id("rel"),
            version=1,
            known_from=self._now,
            **columns,
            **self._by,
        )
        self._pending.append(row)
        return row

    def revise(
        self, row: GraphRelation, changes: Mapping[str, Any], reason: str | None
    ) -> GraphRelation:
        """The next version, with `changes`; an unwritten version is changed in place."""
        if any(row is pending for pending in self._pending):
            for name, value in changes.items():
                setattr(row, name, value)
            row.reason = reason or row.reason
            return row
        self.withdraw(row)
        columns = {name: getattr(row, name) for name in _CARRIED} | dict(changes)
        following = GraphRelation(
            **columns, version=row.version + 1, known_from=row.known_to, reason=reason, **self._by
        )
        self._pending.append(following)
        return following

    def withdraw(self, row: GraphRelation) -> None:
        """Let a version be known no longer; it stays readable by `known_at`."""
        row.known_to = max(self._now, row.known_from)

    async def flush(self) -> None:
        """Write the changes: first versions known no longer, so that the next do not conflict.

        Raises:
            RelationTakenError: another relation states the same; impossible under the bucket's
                lock.

        """
        await self._db.flush()
        self._db.add_all(self._pending)
        relation_id = self._pending[-1].relation_id if self._pending else ""
        with conflicts({"graph_relations_uk_current": RelationTakenError(relation_id)}):
            await self._db.flush()
        self._pending = []

    async def transaction_time(self) -> datetime:
        """When this transaction began, by PostgreSQL's clock."""
        time: datetime = (await self._db.scalars(select(func.now()))).one()
        return time
