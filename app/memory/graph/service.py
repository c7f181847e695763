"""Reads of the graph: entities, relations at any time, walks; and rows as the API shows them."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import SelectorRequiredError
from app.identity.tenants.access import Access, Principal
from app.language.text.names import name_key
from app.memory.graph.models import GraphChange, GraphEntity, GraphRelation
from app.memory.graph.neighbourhood_repository import MOST_EDGES, GraphNeighbourhood, When
from app.memory.graph.relation_repository import RelationTimeline
from app.memory.graph.repository import EntityRepository
from app.memory.graph.schemas import (
    ChangeRead,
    EntityDetail,
    EntityQuery,
    EntityRead,
    EntityShort,
    GraphFound,
    GraphSearchQuery,
    MentionPage,
    NeighbourQuery,
    NeighbourRead,
    Neighbours,
    PathQuery,
    PathRead,
    Paths,
    RelationQuery,
    RelationRead,
    WhenQuery,
)
from app.memory.graph.statements import keys_in
from app.memory.memories.refreshes import GRAPH_REFRESH, hasten, key_of
from app.platform.values.pagination import (
    Page,
    PageQuery,
    decode_number,
    decode_time,
    encode,
    page,
)
from app.platform.work.unit import Work


async def entities_shown(
    db: AsyncSession, access: Access, rows: Sequence[GraphEntity]
) -> list[EntityRead]:
    """Entities with their aliases."""
    aliases = await EntityRepository(db, access).aliases(row.entity_id for row in rows)
    return [
        EntityRead.model_validate(row).model_copy(
            update={"aliases": list(aliases.get(row.entity_id, ()))}
        )
        for row in rows
    ]


async def relations_shown(
    db: AsyncSession, access: Access, rows: Sequence[GraphRelation]
) -> list[RelationRead]:
    """Relations with the names that their two sides have now.

    A relation whose side was erased since is left out.
    """
    ends = await EntityRepository(db, access).get_all(
        {entity_id for row in rows for entity_id in (row.source_id, row.destination_id)}
    )
    return [
        _relation_shown(row, ends[row.source_id], ends[row.destination_id])
        for row in rows
        if {row.source_id, row.destination_id} <= ends.keys()
    ]


def _relation_shown(
    row: GraphRelation, source: GraphEntity, destination: GraphEntity
) -> RelationRead:
    columns = {
        name: getattr(row, name)
        for name in RelationRead.model_fields
        if name not in {"source", "destination"}
    }
    return RelationRead(
        **columns,
        source=EntityShort.model_validate(source),
        destination=EntityShort.model_validate(destination),
    )


def change_shown(row: GraphChange) -> ChangeRead:
    before, after = _counted(row.before), _counted(row.after)
    return ChangeRead(
        change_id=row.change_id,
        event=row.event,
        entity_ids=row.entity_ids,
        rows={
            table.removeprefix("graph_"): max(before.get(table, 0), after.get(table, 0))
            for table in sorted({*before, *after})
        },
        reason=row.reason,
        actor=row.actor,
        create_time=row.create_time,
        undone_at=row.undone_at,
    )


def _counted(rows: Any) -> dict[str, int]:
    """How many rows of each table; imported values of any shape count as none."""
    if not isinstance(rows, dict):
        return {}
    return {table: len(each) for table, each in rows.items() if isinstance(each, list)}


OWNERS: Final = ("user_id", "agent_id", "project_id")
MOST_SEEDS: Final = 20


class GraphService:
    """Reads of the graph, as far as a caller may see it."""

    def __init__(self, work: Work, now: Callable[[], datetime]) -> None:
        self._work = work
        self._now = now

    async def entities(self, principal: Principal, query: EntityQuery) -> Page[EntityRead]:
        """A page of entities, newest first, without merged ones."""
        start = decode_time(query.cursor, "entities")
        equal = query.model_dump(include={*OWNERS, "scope"}, exclude_none=True)
        if query.type is not None:
            equal["entity_type"] = query.type
        async with self._work.read(principal) as db:
            rows = await EntityRepository(db, principal.access).list_entities(
                equal=equal,
                contains=name_key(query.q) if query.q else None,
                start=start,
                limit=query.limit,
            )
            shown = {
                entity.entity_id: entity
                for entity in await entities_shown(db, principal.access, rows)
            }
        await self._hasten(principal, query)
        return page(
            "entities", rows, query.limit, show=lambda row: shown[row.entity_id], place=_made
        )

    async def entity(self, principal: Principal, entity_id: str) -> EntityDetail:
        """One entity with its aliases and the number of its mentions; a merged one too.

        Raises:
            EntityNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            entities = EntityRepository(db, principal.access)
            row = await entities.get(entity_id)
            [shown] = await entities_shown(db, principal.access, [row])
            counted = await entities.count_mentions([entity_id])
        return EntityDetail.model_validate(row).model_copy(
            update={"aliases": shown.aliases, "mentions": counted.get(entity_id, 0)}
        )

    async def memories(self, principal: Principal, entity_id: str, query: PageQuery) -> MentionPage:
        """A page of ids of memories that mention an entity, newest first.

        Raises:
            EntityNotFoundError: there is none for this caller.

        """
        start = decode_time(query.cursor, "entity_memories")
        async with self._work.read(principal) as db:
            entities = EntityRepository(db, principal.access)
            row = await entities.get(entity_id)
            ids = await entities.memories_of(
                entity_id, start=start[1] if start else None, limit=query.limit
            )
        more = len(ids) > query.limit
        return MentionPage(
            items=list(ids[: query.limit]),
            next_cursor=encode("entity_memories", row.create_time, ids[query.limit - 1])
            if more
            else None,
        )

    async def relations(self, principal: Principal, query: RelationQuery) -> Page[RelationRead]:
        """A page of relations, newest first: what holds at a time, by what was known at a time."""
        start = decode_time(query.cursor, "relations")
        when = self._when(query)
        async with self._work.read(principal) as db:
            rows = await RelationTimeline(db, principal.access, now=self._now()).list_relations(
                equal=query.model_dump(
                    include={*OWNERS, "relation", "source_id", "destination_id"}, exclude_none=True
                ),
                entity_id=query.entity_id,
                known_at=when.known_at,
                as_of=None if query.include_closed else when.as_of,
                start=start,
                limit=query.limit,
            )
            relations = await relations_shown(db, principal.access, rows)
        await self._hasten(principal, query)
        return _page_of("relations", rows, relations, query.limit, _learned)

    async def history(
        self, principal: Principal, relation_id: str, query: PageQuery
    ) -> Page[RelationRead]:
        """A page of a relation's versions, newest first; also of a withdrawn one.

        Raises:
            RelationNotFoundError: there is none for this caller.

        """
        start = decode_number(query.cursor, "relation_history")
        async with self._work.read(principal) as db:
            rows = await RelationTimeline(db, principal.access, now=self._now()).history(
                relation_id, start=start, limit=query.limit
            )
            relations = await relations_shown(db, principal.access, rows)
        return _page_of(
            "relation_history",
            rows,
            relations,
            query.limit,
            lambda row: (row.version, row.relation_id),
        )

    async def neighbours(self, principal: Principal, query: NeighbourQuery) -> Neighbours:
        """The nearest entities around one, and the relations among them all.

        Raises:
            EntityNotFoundError: the id is none for this caller. For an unknown name the answer
                is empty.
            SelectorRequiredError: a name without the owner of the graph.

        """
        if query.name is not None:
            _refuse_all_graphs(principal, query)
        when = self._when(query)
        async with self._work.read(principal) as db:
            entities = EntityRepository(db, principal.access)
            seeds = await self._seeds(entities, query)
            near = GraphNeighbourhood(db, principal.access)
            walk = await near.walk(
                seeds,
                depth=query.depth,
                limit=query.limit + len(seeds),
                when=when,
                relation=query.relation,
            )
            rows = await entities.get_all(walk.hops)
            edges = await near.between(list(rows), when=when, relation=query.relation)
            relations = await relations_shown(db, principal.access, edges[:MOST_EDGES])
        await self._hasten(principal, query)
        return Neighbours(
            entities=[
                NeighbourRead(**_short(rows[entity_id]).model_dump(), hops=hops)
                for entity_id, hops in walk.hops.items()
                if entity_id in rows
            ],
            relations=relations,
            truncated=walk.truncated or len(edges) > MOST_EDGES,
        )

    async def paths(self, principal: Principal, query: PathQuery) -> Paths:
        """The shortest paths between two entities; empty when they are not related.

        Raises:
            EntityNotFoundError: an id is none for this caller.

        """
        when = self._when(query)
        async with self._work.read(principal) as db:
            entities = EntityRepository(db, principal.access)
            ends = [await entities.get(entity_id) for entity_id in (query.from_, query.to)]
            near = GraphNeighbourhood(db, principal.access)
            found, truncated = await near.paths(
                ends[0].entity_id,
                ends[1].entity_id,
                depth=query.depth,
                limit=query.limit,
                when=when,
            )
            rows = await entities.get_all(
                {entity_id for path in found for entity_id in path.entity_ids}
            )
            edges = await near.relations(
                list({relation_id for path in found for relation_id in path.relation_ids}),
                when=when,
            )
            relations = await relations_shown(db, principal.access, list(edges.values()))
        by_id = {relation.relation_id: relation for relation in relations}
        return Paths(
            paths=[
                PathRead(
                    entities=[_short(rows[entity_id]) for entity_id in path.entity_ids],
                    relations=[by_id[relation_id] for relation_id in path.relation_ids],
                )
                for path in found
                # Paths over rows erased since the walk are left out.
                if rows.keys() >= set(path.entity_ids) and by_id.keys() >= set(path.relation_ids)
            ],
            truncated=truncated,
        )

    async def search(self, principal: Principal, query: GraphSearchQuery) -> GraphFound:
        """The entities that a text names, the longest name first, with their relations.

        Empty when it names none.

        Raises:
            SelectorRequiredError: the owner of the graph is missing.

        """
        _refuse_all_graphs(principal, query)
        when = self._when(query)
        async with self._work.read(principal) as db:
            rows = await EntityRepository(db, principal.access).named(
                keys_in(query.q),
                equal=query.model_dump(include={*OWNERS}, exclude_none=True),
                limit=query.limit + 1,
            )
            near = GraphNeighbourhood(db, principal.access)
            shown = rows[: query.limit]
            walk = await near.walk(
                [row.entity_id for row in shown],
                depth=1,
                limit=query.limit * 5 + len(shown),
                when=when,
            )
            edges = await near.between(list(walk.hops), when=when)
            named = {row.entity_id for row in shown}
            theirs = [row for row in edges if {row.source_id, row.destination_id} & named]
            relations = await relations_shown(db, principal.access, theirs)
        await self._hasten(principal, query)
        truncated = walk.truncated or len(rows) > query.limit or len(edges) > MOST_EDGES
        return GraphFound(
            entities=[_short(row) for row in shown], relations=relations, truncated=truncated
        )

    async def _hasten(
        self,
        principal: Principal,
        query: EntityQuery | RelationQuery | NeighbourQuery | GraphSearchQuery,
    ) -> None:
        """Let the next read find what pending refreshes will change: of the owner that the request
        or the key names, else of any. A bound key brings forward its own alone.
        """
        access = principal.access
        user_id = query.user_id or access.user_id
        owners = (("project", query.project_id), ("user", user_id), ("agent", query.agent_id))
        named = [(scope, scope_id) for scope, scope_id in owners if scope_id is not None]
        if access.user_id is not None or access.agent_id is not None:
            own = {("user", access.user_id), ("agent", access.agent_id)}
            named = [owner for owner in named if owner in own]
            if not named:
                return
        await hasten(self._work, principal, GRAPH_REFRESH, key_of(named[0]) if named else None)

    def _when(self, query: WhenQuery | RelationQuery) -> When:
        return When(query.as_of or query.known_at or self._now(), query.known_at)

    async def _seeds(self, entities: EntityRepository, query: NeighbourQuery) -> list[str]:
        if query.entity_id is not None:
            return [(await entities.get(query.entity_id)).entity_id]
        rows = await entities.named(
            [name_key(query.name or "")],
            equal=query.model_dump(include={*OWNERS}, exclude_none=True),
            limit=MOST_SEEDS,
        )
        return [row.entity_id for row in rows]


def _refuse_all_graphs(principal: Principal, query: NeighbourQuery | GraphSearchQuery) -> None:
    """Refuse a name without an owner: the same name is another entity in each graph.

    Raises:
        SelectorRequiredError: neither the request nor the key names whose.

    """
    if not principal.access.restricted and all(getattr(query, name) is None for name in OWNERS):
        raise SelectorRequiredError("query", OWNERS)


def _page_of(
    name: str,
    rows: Sequence[GraphRelation],
    relations: Sequence[RelationRead],
    limit: int,
    place: Callable[[GraphRelation], Any],
) -> Page[RelationRead]:
    """A page without relations that were erased since its rows were read."""
    shown = {(relation.relation_id, relation.version): relation for relation in relations}
    whole = page(
        name, rows, limit, show=lambda row: shown.get((row.relation_id, row.version)), place=place
    )
    return Page(
        items=[item for item in whole.items if item is not None], next_cursor=whole.next_cursor
    )


def _short(row: GraphEntity) -> EntityShort:
    return EntityShort.model_validate(row)


def _made(row: GraphEntity) -> Any:
    return row.create_time, row.entity_id


def _learned(row: GraphRelation) -> Any:
    return row.known_from, row.relation_id
