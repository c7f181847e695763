"""Answers about the graph: entities and the relations between them over time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.answers import Answer, Listing, escape_line


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityShort(Answer):
    """An entity without details. `str()` is its escaped name."""

    entity_id: str
    name: str
    entity_type: str = "thing"

    def __str__(self) -> str:
        return escape_line(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity(EntityShort):
    """A person or thing that memories mention."""

    aliases: tuple[str, ...] = ()
    scope: str = "user"
    user_id: str | None = None
    agent_id: str | None = None
    project_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    merged_into: str | None = None
    """Id of the entity it was merged into."""
    creator: str | None = None
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDetail(Entity):
    """An entity and the number of memories, visible to the caller, that mention it."""

    mentions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EntityList(Listing[Entity]):
    """Entities, newest first."""

    results: tuple[Entity, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation(Answer):
    """One version of a relation. `str()` is an escaped line for a prompt."""

    relation_id: str
    source: EntityShort
    relation: str
    destination: EntityShort
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()
    """Ids of the messages that state it."""
    memory_ids: tuple[str, ...] = ()
    """Ids of the memories that state it."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    known_from: datetime | None = None
    """Since when this version has been the known one."""
    known_to: datetime | None = None
    reason: str | None = None
    actor: str | None = None
    """Id of the key that wrote this version."""
    job_id: str | None = None
    scope: str = "user"
    user_id: str | None = None
    agent_id: str | None = None
    project_id: str | None = None
    version: int = 1

    def __str__(self) -> str:
        return f"{self.source} {self.relation} {self.destination}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RelationList(Listing[Relation]):
    """Relations, or versions of one relation, newest first."""

    results: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour(EntityShort):
    """An entity and its distance from the start."""

    hops: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours(Answer):
    """Entities, nearest first, and the relations among them. `str()` has a line per relation."""

    entities: tuple[Neighbour, ...] = ()
    relations: tuple[Relation, ...] = ()
    truncated: bool = False
    """Whether a limit was reached, so that there may be more."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.relations))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPath(Answer):
    """A path between two entities: the entities on it and the relations between them."""

    entities: tuple[EntityShort, ...] = ()
    relations: tuple[Relation, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.relations))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPaths(Answer):
    """The shortest paths; none visits an entity twice. `str()` has a line per path."""

    paths: tuple[GraphPath, ...] = ()
    truncated: bool = False

    def __str__(self) -> str:
        return "\n".join(map(str, self.paths))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFound(Answer):
    """The entities that a text names and their relations. `str()` has a line per relation."""

    entities: tuple[EntityShort, ...] = ()
    relations: tuple[Relation, ...] = ()
    truncated: bool = False

    def __str__(self) -> str:
        return "\n".join(map(str, self.relations))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphChange(Answer):
    """A merge or a split of entities, with the number of rows changed."""

    change_id: str | None = None
    """None for a dry run."""
    event: str
    entity_ids: tuple[str, ...] = ()
    """The entity that was kept is first."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Number of rows changed, by kind."""
    reason: str | None = None
    actor: str | None = None
    create_time: datetime | None = None
    undone_at: datetime | None = None
    dry_run: bool = False

    def __str__(self) -> str:
        return f"{self.event} {', '.join(self.entity_ids)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GraphChangeList(Listing[GraphChange]):
    """Merges and splits, newest first."""

    results: tuple[GraphChange, ...] = ()
