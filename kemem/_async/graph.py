"""Methods of `memory.graph`: entities, relations, and walks over them."""

from collections.abc import Sequence
from typing import Unpack

from kemem._async.sender import AsyncResource
from kemem.answers import listing
from kemem.calls import Version, change, fetch, fetch_pages, fetch_texts, post, remove
from kemem.graph import (
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
from kemem.options import (
    EntityChanges,
    EntityOptions,
    GraphWhen,
    GraphWhere,
    RelationChanges,
    RelationFields,
    RelationOptions,
    SplitOptions,
)


class AsyncGraph(AsyncResource):
    """Entities that memories mention, and relations between them."""

    async def entities(
        self, q: str | None = None, limit: int | None = 100, **options: Unpack[EntityOptions]
    ) -> EntityList:
        """Return up to `limit` entities, newest first; None means all.

        Args:
            q: part of a name or an alias, in any case.
            options: see `EntityOptions`.

        """
        call = fetch_pages(Entity, "graph", "entities", limit=limit, q=q, **options)
        return listing(EntityList, await self._collect(call, limit))

    async def entity(self, entity_id: str) -> EntityDetail:
        """Return one entity; a merged one names in `merged_into` what it was merged into.

        Raises:
            NotFoundError: there is no such entity.

        """
        return await self._send(fetch(EntityDetail, "graph", "entities", entity_id))

    async def mentions(self, entity_id: str, limit: int | None = 100) -> tuple[str, ...]:
        """Return the ids of up to `limit` memories that mention an entity, newest first.

        None means all.

        Raises:
            NotFoundError: there is no such entity.

        """
        call = fetch_texts("graph", "entities", entity_id, "memories", limit=limit)
        return tuple(await self._collect(call, limit))

    async def update_entity(
        self, entity_id: str, *, version: Version | None = None, **changes: Unpack[EntityChanges]
    ) -> Entity:
        """Change an entity; its old name becomes an alias.

        Args:
            version: the version you read; refused if there is a newer one.
            changes: see `EntityChanges`.

        Raises:
            NotFoundError: there is no such entity.
            ConflictError: `version_conflict`; `entity_merged`; or `entity_exists`: another entity
                has the name.

        """
        return await self._send(
            change("PATCH", Entity, "graph", "entities", entity_id, body=changes, version=version)
        )

    async def add_alias(self, entity_id: str, alias: str) -> Entity:
        """Add a name by which an entity is found.

        Raises:
            NotFoundError: there is no such entity.
            ConflictError: another entity has the name (`entity_exists`).

        """
        body = {"alias": alias}
        return await self._send(post(Entity, "graph", "entities", entity_id, "aliases", body=body))

    async def remove_alias(self, entity_id: str, alias: str) -> None:
        """Remove a name of an entity.

        Raises:
            NotFoundError: there is no such entity or alias.

        """
        return await self._send(remove("graph", "entities", entity_id, "aliases", alias=alias))

    async def merge(
        self,
        entity_id: str,
        entity_ids: Sequence[str],
        *,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> GraphChange:
        """Merge the entities `entity_ids` into `entity_id`. `undo` reverts it.

        Raises:
            NotFoundError: there is no such entity.
            UnprocessableError: `different_owners`, `same_entity` or `too_many_rows`.

        """
        body = {"entity_ids": list(entity_ids), "reason": reason, "dry_run": dry_run}
        call = post(GraphChange, "graph", "entities", entity_id, "merge", body=body)
        return await self._send(call)

    async def split(
        self, entity_id: str, name: str, *, dry_run: bool = False, **options: Unpack[SplitOptions]
    ) -> GraphChange:
        """Move some aliases, relations and memories of an entity to a new one. `undo` reverts it.

        Raises:
            NotFoundError: there is no such entity.
            ConflictError: another entity has the name (`entity_exists`).
            UnprocessableError: a relation or memory is not of this entity (`not_of_entity`).

        """
        body = {"name": name, "dry_run": dry_run, **options}
        call = post(GraphChange, "graph", "entities", entity_id, "split", body=body)
        return await self._send(call)

    async def changes(self, limit: int | None = 100) -> GraphChangeList:
        """Return up to `limit` merges and splits, newest first; None means all."""
        call = fetch_pages(GraphChange, "graph", "changes", limit=limit)
        return listing(GraphChangeList, await self._collect(call, limit))

    async def undo(self, change_id: str) -> GraphChange:
        """Revert a merge or a split completely, or not at all.

        Raises:
            NotFoundError: there is no such change.
            ConflictError: `change_undone`; `changed_since`: undo later changes first; or
                `invalid_change`: rows can no longer be restored.

        """
        return await self._send(post(GraphChange, "graph", "changes", change_id, "undo"))

    async def relations(
        self, limit: int | None = 100, **options: Unpack[RelationOptions]
    ) -> RelationList:
        """Return up to `limit` relations, newest first; None means all.

        Args:
            options: see `RelationOptions`; by default those that are true now.

        """
        call = fetch_pages(Relation, "graph", "relations", limit=limit, **options)
        return listing(RelationList, await self._collect(call, limit))

    async def add_relation(
        self,
        source: str | None,
        relation: str,
        destination: str | None,
        **fields: Unpack[RelationFields],
    ) -> Relation:
        """Add a relation, or confirm one that exists.

        Args:
            source: a name, of an existing or a new entity; None with `source_id`.
            relation: in Latin letters, such as `studies_at`, whatever the language of the names.
            destination: as `source`.
            fields: see `RelationFields`; `single` ends other relations of this kind.

        Raises:
            NotFoundError: there is no entity, memory, user, agent or project with a given id.
            ConflictError: the entity was merged into another one (`entity_merged`).
            UnprocessableError: the relation or a name is invalid, or `different_owners`.

        """
        body = {"source": source, "relation": relation, "destination": destination, **fields}
        return await self._send(post(Relation, "graph", "relations", body=body))

    async def history(self, relation_id: str, limit: int | None = 100) -> RelationList:
        """Return up to `limit` versions of a relation, also of a deleted one, newest first.

        None means all.

        Raises:
            NotFoundError: there is no such relation.

        """
        call = fetch_pages(Relation, "graph", "relations", relation_id, "history", limit=limit)
        return listing(RelationList, await self._collect(call, limit))

    async def update_relation(
        self,
        relation_id: str,
        *,
        version: Version | None = None,
        **changes: Unpack[RelationChanges],
    ) -> Relation:
        """Correct a relation by adding a version; `history` has the earlier ones.

        Args:
            version: the version you read; refused if there is a newer one.
            changes: see `RelationChanges`; None removes the start or end of the period.

        Raises:
            NotFoundError: there is no such relation.
            ConflictError: `version_conflict`; or `relation_exists`: another relation says that.
            UnprocessableError: it would end before it begins.

        """
        call = change(
            "PATCH", Relation, "graph", "relations", relation_id, body=changes, version=version
        )
        return await self._send(call)

    async def delete_relation(self, relation_id: str, *, version: Version | None = None) -> None:
        """Delete a relation; its history is kept.

        Raises:
            NotFoundError: there is no such relation.
            ConflictError: there is a newer version (`version_conflict`).

        """
        return await self._send(remove("graph", "relations", relation_id, version=version))

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
        """Return the entities at most `depth` relations away from one, nearest first.

        Args:
            name: a name or an alias of the entity.
            entity_id: instead of the name.
            depth: 1 to 3.
            limit: 1 to 500 entities.
            relation: follow only relations of this kind.
            where: the owner of the graph and the times; see `GraphWhere`.

        Raises:
            NotFoundError: there is no such entity.
            UnprocessableError: a name was given without an owner (`selector_required`).

        """
        call = fetch(
            Neighbours,
            "graph",
            "neighbours",
            name=name,
            entity_id=entity_id,
            depth=depth,
            limit=limit,
            relation=relation,
            **where,
        )
        return await self._send(call)

    async def paths(
        self,
        source_id: str,
        destination_id: str,
        *,
        depth: int = 3,
        limit: int = 10,
        **when: Unpack[GraphWhen],
    ) -> GraphPaths:
        """Return the shortest paths between two entities, of at most three relations.

        Raises:
            NotFoundError: there is no such entity.

        """
        ends = {"from": source_id, "to": destination_id}
        call = fetch(GraphPaths, "graph", "paths", **ends, depth=depth, limit=limit, **when)
        return await self._send(call)

    async def search(self, q: str, limit: int = 20, **where: Unpack[GraphWhere]) -> GraphFound:
        """Return the entities whose name or alias occurs in a text, with their relations.

        Raises:
            UnprocessableError: no owner was given (`selector_required`).

        """
        return await self._send(fetch(GraphFound, "graph", "search", q=q, limit=limit, **where))
