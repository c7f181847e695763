"""The calls about the graph."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, TypedDict

from kemem.graphs import (
    Entity,
    EntityDetail,
    GraphChange,
    GraphFound,
    GraphPaths,
    Neighbours,
    Relation,
)
from kemem.writing import (
    Call,
    Page,
    Version,
    change,
    fetch,
    fetch_pages,
    fetch_texts,
    if_match,
    post,
    remove,
)

GraphScope = Literal["user", "project", "agent"]


class GraphOwner(TypedDict, total=False):
    """Whose graph."""

    user_id: str | None
    agent_id: str | None
    project_id: str | None


class GraphWhen(TypedDict, total=False):
    """What held at `as_of`, by what was known at `known_at`."""

    as_of: datetime | None
    known_at: datetime | None


class GraphWhere(GraphOwner, GraphWhen, total=False):
    """Whose graph, and when."""


class EntityOptions(GraphOwner, total=False):
    """Which entities are listed."""

    type: str | None
    scope: GraphScope | None


class EntityChanges(TypedDict, total=False):
    """What is changed of an entity; its old name stays as an alias."""

    name: str
    entity_type: str
    metadata: Mapping[str, Any]


class RelationOptions(GraphWhere, total=False):
    """Which relations are listed; `include_closed` also what holds no longer, or not yet."""

    entity_id: str | None
    source_id: str | None
    destination_id: str | None
    relation: str | None
    include_closed: bool | None


class RelationFields(GraphOwner, total=False):
    """What else is said of a new relation; the ids instead of names."""

    source_id: str | None
    source_type: str | None
    destination_id: str | None
    destination_type: str | None
    confidence: float | None
    valid_from: datetime | None
    valid_to: datetime | None
    single: bool | None
    scope: GraphScope | None
    evidence: Sequence[str]
    memory_ids: Sequence[str]


class RelationChanges(TypedDict, total=False):
    """What is corrected of a relation; None opens an end of its period."""

    destination: str
    destination_id: str
    confidence: float
    valid_from: datetime | None
    valid_to: datetime | None
    reason: str | None


class SplitOptions(TypedDict, total=False):
    """What goes to the new entity."""

    entity_type: str | None
    aliases: Sequence[str]
    relation_ids: Sequence[str]
    memory_ids: Sequence[str]
    reason: str | None


def entities(q: str | None, *, limit: int | None, **params: Any) -> Call[Page[Entity]]:
    return fetch_pages(Entity, "graph", "entities", limit=limit, q=q, **params)


def entity(entity_id: str) -> Call[EntityDetail]:
    return fetch(EntityDetail, "graph", "entities", entity_id)


def mentions(entity_id: str, *, limit: int | None) -> Call[Page[str]]:
    return fetch_texts("graph", "entities", entity_id, "memories", limit=limit)


def update_entity(
    entity_id: str, changes: Mapping[str, Any], version: Version | None
) -> Call[Entity]:
    return change("PATCH", Entity, "graph", "entities", entity_id, body=changes, version=version)


def add_alias(entity_id: str, alias: str) -> Call[Entity]:
    return post(Entity, "graph", "entities", entity_id, "aliases", body={"alias": alias})


def remove_alias(entity_id: str, alias: str) -> Call[None]:
    return remove("graph", "entities", entity_id, "aliases", alias=alias)


def regroup(entity_id: str, how: str, **fields: Any) -> Call[GraphChange]:
    """A merge or a split."""
    return post(GraphChange, "graph", "entities", entity_id, how, body=fields)


def changes(*, limit: int | None) -> Call[Page[GraphChange]]:
    return fetch_pages(GraphChange, "graph", "changes", limit=limit)


def undo(change_id: str) -> Call[GraphChange]:
    return post(GraphChange, "graph", "changes", change_id, "undo")


def relations(*, limit: int | None, **params: Any) -> Call[Page[Relation]]:
    return fetch_pages(Relation, "graph", "relations", limit=limit, **params)


def add_relation(**fields: Any) -> Call[Relation]:
    return post(Relation, "graph", "relations", body=fields)


def history(relation_id: str, *, limit: int | None) -> Call[Page[Relation]]:
    return fetch_pages(Relation, "graph", "relations", relation_id, "history", limit=limit)


def update_relation(
    relation_id: str, changes: Mapping[str, Any], version: Version | None
) -> Call[Relation]:
    return change(
        "PATCH", Relation, "graph", "relations", relation_id, body=changes, version=version
    )


def delete_relation(relation_id: str, version: Version | None) -> Call[None]:
    return replace(remove("graph", "relations", relation_id), headers=if_match(version))


def neighbours(**params: Any) -> Call[Neighbours]:
    return fetch(Neighbours, "graph", "neighbours", **params)


def paths(source_id: str, destination_id: str, **params: Any) -> Call[GraphPaths]:
    ends = {"from": source_id, "to": destination_id}
    return fetch(GraphPaths, "graph", "paths", **ends, **params)


def search(q: str, **params: Any) -> Call[GraphFound]:
    return fetch(GraphFound, "graph", "search", q=q, **params)
