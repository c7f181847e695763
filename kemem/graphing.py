"""`Memory.graph` and `AsyncMemory.graph`: what can be done with the graph."""

from collections.abc import Sequence
from typing import Unpack

from kemem import graph_calls
from kemem.base import listing
from kemem.block_editing import AsyncCollect, AsyncSend, Collect, Send
from kemem.graph_calls import (
    EntityChanges,
    EntityOptions,
    GraphWhen,
    GraphWhere,
    RelationChanges,
    RelationFields,
    RelationOptions,
    SplitOptions,
)
from kemem.graphs import (
    Entity,
    EntityDetail,
    EntityList,
    GraphChange,
    GraphChangeList,
    GraphFound,
    GraphPaths,
    Neighbours,
    Relation,
    RelationList,
)
from kemem.writing import Version


class Graph:
    """Who and what is spoken of, and how they hang together, as `memory.graph`."""

    def __init__(self, send: Send, collect: Collect) -> None:
        self._send = send
        self._collect = collect

    def entities(
        self, q: str | None = None, limit: int | None = 100, **options: Unpack[EntityOptions]
    ) -> EntityList:
        """Up to `limit` entities, newest first; None means all.

        Args:
            q: a piece of a name or of an alias, in any case.
            options: see `EntityOptions`.

        """
        call = graph_calls.entities(q, limit=limit, **options)
        return listing(EntityList, self._collect(call, limit))

    def entity(self, entity_id: str) -> EntityDetail:
        """One entity; of a merged one, what it was merged into. Raises NotFoundError."""
        return self._send(graph_calls.entity(entity_id))

    def mentions(self, entity_id: str, limit: int | None = 100) -> tuple[str, ...]:
        """Ids of up to `limit` memories that speak of an entity, newest first; None means all."""
        return tuple(self._collect(graph_calls.mentions(entity_id, limit=limit), limit))

    def update_entity(
        self, entity_id: str, *, version: Version | None = None, **changes: Unpack[EntityChanges]
    ) -> Entity:
        """Change an entity; its old name stays as an alias.

        Args:
            version: the one you read; the change is refused when it has moved on.
            changes: see `EntityChanges`.

        Raises:
            ConflictError: `version_conflict`, `entity_merged`, or `entity_exists`: another has
                the name.

        """
        return self._send(graph_calls.update_entity(entity_id, changes, version))

    def add_alias(self, entity_id: str, alias: str) -> Entity:
        """Give an entity another name, under which it is found from now on."""
        return self._send(graph_calls.add_alias(entity_id, alias))

    def remove_alias(self, entity_id: str, alias: str) -> None:
        """Take a name from an entity. Raises NotFoundError."""
        return self._send(graph_calls.remove_alias(entity_id, alias))

    def merge(
        self,
        entity_id: str,
        entity_ids: Sequence[str],
        *,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> GraphChange:
        """Make one entity of several: `entity_ids` become `entity_id`. `undo` takes it back.

        Raises:
            UnprocessableError: `different_owners`, `same_entity`, `too_many_rows`.

        """
        told = {"entity_ids": list(entity_ids), "reason": reason, "dry_run": dry_run}
        return self._send(graph_calls.regroup(entity_id, "merge", **told))

    def split(
        self, entity_id: str, name: str, *, dry_run: bool = False, **options: Unpack[SplitOptions]
    ) -> GraphChange:
        """Split a new entity off one, with the aliases, relations and memories you name.

        Raises:
            ConflictError: `entity_exists`: another has the name.
            UnprocessableError: `not_of_entity`: it has no such relation or memory.

        """
        return self._send(
            graph_calls.regroup(entity_id, "split", name=name, dry_run=dry_run, **options)
        )

    def changes(self, limit: int | None = 100) -> GraphChangeList:
        """Up to `limit` merges and splits, newest first; None means all."""
        return listing(GraphChangeList, self._collect(graph_calls.changes(limit=limit), limit))

    def undo(self, change_id: str) -> GraphChange:
        """Undo a merge or a split: every row is as it was, or nothing is done.

        Raises:
            ConflictError: `change_undone`, `changed_since`: undo first what came after it, or
                `invalid_change`: its rows cannot be put back.

        """
        return self._send(graph_calls.undo(change_id))

    def relations(
        self, limit: int | None = 100, **options: Unpack[RelationOptions]
    ) -> RelationList:
        """Up to `limit` relations, newest first; None means all.

        Args:
            limit: pages are fetched as needed.
            options: see `RelationOptions`; without moments what holds now.

        """
        call = graph_calls.relations(limit=limit, **options)
        return listing(RelationList, self._collect(call, limit))

    def add_relation(
        self,
        source: str | None,
        relation: str,
        destination: str | None,
        **fields: Unpack[RelationFields],
    ) -> Relation:
        """State a relation; said again it is confirmed.

        Args:
            source: a name, matched or made; None with `source_id`.
            relation: in Latin letters, such as `studies_at`, whatever the language of the names.
            destination: as `source`.
            fields: see `RelationFields`; `single` ends the other values of this relation.

        """
        return self._send(
            graph_calls.add_relation(
                source=source, relation=relation, destination=destination, **fields
            )
        )

    def history(self, relation_id: str, limit: int | None = 100) -> RelationList:
        """All that was ever known of a relation, newest first; also of a deleted one."""
        call = graph_calls.history(relation_id, limit=limit)
        return listing(RelationList, self._collect(call, limit))

    def update_relation(
        self,
        relation_id: str,
        *,
        version: Version | None = None,
        **changes: Unpack[RelationChanges],
    ) -> Relation:
        """Correct a relation: the next version is what is known from now on.

        Raises:
            ConflictError: `version_conflict`, or `relation_exists`: another says that.
            UnprocessableError: it would end before it begins.

        """
        return self._send(graph_calls.update_relation(relation_id, changes, version))

    def delete_relation(self, relation_id: str, *, version: Version | None = None) -> None:
        """Know a relation no longer; its history stays."""
        return self._send(graph_calls.delete_relation(relation_id, version))

    def neighbours(
        self,
        name: str | None = None,
        *,
        entity_id: str | None = None,
        depth: int = 1,
        limit: int = 100,
        relation: str | None = None,
        **where: Unpack[GraphWhere],
    ) -> Neighbours:
        """What is around an entity, up to three steps away, the nearest first.

        Args:
            name: a name or an alias, or else `entity_id`.
            entity_id: instead of the name.
            depth: 1 to 3 steps.
            limit: 1 to 500 entities.
            relation: follow this one alone.
            where: whose graph, and when; see `GraphWhere`.

        Raises:
            UnprocessableError: `selector_required`: a name, and nobody says in whose graph.

        """
        walk = {"depth": depth, "limit": limit, "relation": relation}
        return self._send(graph_calls.neighbours(name=name, entity_id=entity_id, **walk, **where))

    def paths(
        self,
        source_id: str,
        destination_id: str,
        *,
        depth: int = 3,
        limit: int = 10,
        **when: Unpack[GraphWhen],
    ) -> GraphPaths:
        """How two entities hang together: the shortest paths, of at most three steps."""
        return self._send(
            graph_calls.paths(source_id, destination_id, depth=depth, limit=limit, **when)
        )

    def search(self, q: str, limit: int = 20, **where: Unpack[GraphWhere]) -> GraphFound:
        """The entities that a text names, by names and aliases, with their relations.

        Raises:
            UnprocessableError: `selector_required`: nobody says in whose graph.

        """
        return self._send(graph_calls.search(q, limit=limit, **where))


class AsyncGraph:
    """`Graph` for asyncio."""

    def __init__(self, send: AsyncSend, collect: AsyncCollect) -> None:
        self._send = send
        self._collect = collect

    async def entities(
        self, q: str | None = None, limit: int | None = 100, **options: Unpack[EntityOptions]
    ) -> EntityList:
        """As `Graph.entities`."""
        call = graph_calls.entities(q, limit=limit, **options)
        return listing(EntityList, await self._collect(call, limit))

    async def entity(self, entity_id: str) -> EntityDetail:
        """As `Graph.entity`."""
        return await self._send(graph_calls.entity(entity_id))

    async def mentions(self, entity_id: str, limit: int | None = 100) -> tuple[str, ...]:
        """As `Graph.mentions`."""
        return tuple(await self._collect(graph_calls.mentions(entity_id, limit=limit), limit))

    async def update_entity(
        self, entity_id: str, *, version: Version | None = None, **changes: Unpack[EntityChanges]
    ) -> Entity:
        """As `Graph.update_entity`."""
        return await self._send(graph_calls.update_entity(entity_id, changes, version))

    async def add_alias(self, entity_id: str, alias: str) -> Entity:
        """As `Graph.add_alias`."""
        return await self._send(graph_calls.add_alias(entity_id, alias))

    async def remove_alias(self, entity_id: str, alias: str) -> None:
        """As `Graph.remove_alias`."""
        return await self._send(graph_calls.remove_alias(entity_id, alias))

    async def merge(
        self,
        entity_id: str,
        entity_ids: Sequence[str],
        *,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> GraphChange:
        """As `Graph.merge`."""
        told = {"entity_ids": list(entity_ids), "reason": reason, "dry_run": dry_run}
        return await self._send(graph_calls.regroup(entity_id, "merge", **told))

    async def split(
        self, entity_id: str, name: str, *, dry_run: bool = False, **options: Unpack[SplitOptions]
    ) -> GraphChange:
        """As `Graph.split`."""
        return await self._send(
            graph_calls.regroup(entity_id, "split", name=name, dry_run=dry_run, **options)
        )

    async def changes(self, limit: int | None = 100) -> GraphChangeList:
        """As `Graph.changes`."""
        return listing(
            GraphChangeList, await self._collect(graph_calls.changes(limit=limit), limit)
        )

    async def undo(self, change_id: str) -> GraphChange:
        """As `Graph.undo`."""
        return await self._send(graph_calls.undo(change_id))

    async def relations(
        self, limit: int | None = 100, **options: Unpack[RelationOptions]
    ) -> RelationList:
        """As `Graph.relations`."""
        call = graph_calls.relations(limit=limit, **options)
        return listing(RelationList, await self._collect(call, limit))

    async def add_relation(
        self,
        source: str | None,
        relation: str,
        destination: str | None,
        **fields: Unpack[RelationFields],
    ) -> Relation:
        """As `Graph.add_relation`."""
        return await self._send(
            graph_calls.add_relation(
                source=source, relation=relation, destination=destination, **fields
            )
        )

    async def history(self, relation_id: str, limit: int | None = 100) -> RelationList:
        """As `Graph.history`."""
        call = graph_calls.history(relation_id, limit=limit)
        return listing(RelationList, await self._collect(call, limit))

    async def update_relation(
        self,
        relation_id: str,
        *,
        version: Version | None = None,
        **changes: Unpack[RelationChanges],
    ) -> Relation:
        """As `Graph.update_relation`."""
        return await self._send(graph_calls.update_relation(relation_id, changes, version))

    async def delete_relation(self, relation_id: str, *, version: Version | None = None) -> None:
        """As `Graph.delete_relation`."""
        return await self._send(graph_calls.delete_relation(relation_id, version))

    async def neighbours(
        self,
        name: str | None = None,
        *,
        entity_id: str | None = None,
        depth: int = 1,
        limit: int = 100,
        relation: str | None = None,
        **where: Unpack[GraphWhere],
    ) -> Neighbours:
        """As `Graph.neighbours`."""
        walk = {"depth": depth, "limit": limit, "relation": relation}
        return await self._send(
            graph_calls.neighbours(name=name, entity_id=entity_id, **walk, **where)
        )

    async def paths(
        self,
        source_id: str,
        destination_id: str,
        *,
        depth: int = 3,
        limit: int = 10,
        **when: Unpack[GraphWhen],
    ) -> GraphPaths:
        """As `Graph.paths`."""
        return await self._send(
            graph_calls.paths(source_id, destination_id, depth=depth, limit=limit, **when)
        )

    async def search(self, q: str, limit: int = 20, **where: Unpack[GraphWhere]) -> GraphFound:
        """As `Graph.search`."""
        return await self._send(graph_calls.search(q, limit=limit, **where))
