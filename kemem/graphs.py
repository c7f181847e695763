"""The graph: who and what is spoken of, and the relations between them through time."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.reading import Answer, Listing
from kemem.rendering import escape_line


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityShort(Answer):
    """An entity as others refer to it."""

    entity_id: str
    name: str
    entity_type: str = "thing"

    def __str__(self) -> str:
        return escape_line(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity(EntityShort):
    """Somebody or something that is spoken of."""

    aliases: tuple[str, ...] = ()
    scope: str = "user"
    user_id: str | None = None
    agent_id: str | None = None
    project_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    merged_into: str | None = None
    """The entity it was merged into."""
    creator: str | None = None
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDetail(Entity):
    """An entity, and how many memories that the caller may see speak of it."""

    mentions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EntityList(Listing[Entity]):
    """Entities, newest first."""

    results: tuple[Entity, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation(Answer):
    """One version of a relation. `str()` is a line for a prompt, escaped."""

    relation_id: str
    source: EntityShort
    relation: str
    destination: EntityShort
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()
    """Ids of messages that say so."""
    memory_ids: tuple[str, ...] = ()
    """Memories that say so."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    known_from: datetime | None = None
    """Since when this version is what is known."""
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
    """Relations, or versions of one, newest first."""

    results: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour(EntityShort):
    """An entity, and how far it is from where the walk began."""

    hops: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours(Answer):
    """What is around, the nearest first, and the relations among all of it."""

    entities: tuple[Neighbour, ...] = ()
    relations: tuple[Relation, ...] = ()
    truncated: bool = False
    """There may be more: a bound was met."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.relations))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPath(Answer):
    """From one entity to another: those on the way, and the relations between them."""

    entities: tuple[EntityShort, ...] = ()
    relations: tuple[Relation, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.relations))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPaths(Answer):
    """The shortest paths; none leads through one entity twice."""

    paths: tuple[GraphPath, ...] = ()
    truncated: bool = False

    def __str__(self) -> str:
        return "\n".join(map(str, self.paths))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFound(Answer):
    """The entities that a text names, and their relations."""

    entities: tuple[EntityShort, ...] = ()
    relations: tuple[Relation, ...] = ()
    truncated: bool = False

    def __str__(self) -> str:
        return "\n".join(map(str, self.relations))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphChange(Answer):
    """A merge or a split, in figures."""

    change_id: str | None = None
    """None of a dry run."""
    event: str
    entity_ids: tuple[str, ...] = ()
    """The one that stays first."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """So many rows were touched, by what they are."""
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
