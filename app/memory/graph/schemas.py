"""The graph as it crosses HTTP."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from app.memory.graph.statements import (
    LARGEST_LIMIT,
    LONGEST_NAME,
    MOST_DEPTH,
    THING,
    fits,
    relation_name,
)
from app.platform.values.fields import (
    ZONED,
    Id,
    Kind,
    Metadata,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)
from app.platform.values.pagination import PageQuery

Scope = Literal["user", "project", "agent"]
Event = Literal["MERGE", "SPLIT", "UPDATE", "DELETE"]


def _name(text: Any) -> Any:
    if isinstance(text, str) and not fits(text):
        raise ValueError(f"must be a name of 1 to {LONGEST_NAME} characters")
    return text


def _relation(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    name = relation_name(text)
    if name is None:
        raise ValueError(
            "must be 1 to 100 Latin letters and digits that can be written in snake_case, such as "
            "studies_at, whatever the language of the names"
        )
    return name


Name = Annotated[
    str,
    BeforeValidator(_name),
    StringConstraints(min_length=1, max_length=LONGEST_NAME, strip_whitespace=True),
    Field(examples=["李明"]),
    Storable,
]
Relation = Annotated[
    str,
    BeforeValidator(_relation),
    Field(
        description="Lower snake_case; `studies at` and `StudiesAt` are `studies_at`.",
        examples=["studies_at"],
    ),
]
Type = Annotated[Kind, Field(description="What it is: person, organization, place …")]
Confidence = Annotated[float, Field(ge=0, le=1)]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=1000), Storable]
Ids = Annotated[list[Id], Field(max_length=100)]
Depth = Annotated[int, Field(ge=1, le=MOST_DEPTH, description="Steps, at most 3.")]
Limit = Annotated[int, Field(ge=1, le=LARGEST_LIMIT)]

AsOf = Annotated[
    Timestamp,
    Field(
        description="What held at this time, even in the future. Left out: `known_at`, else "
        "now. " + ZONED
    ),
]
KnownAt = Annotated[
    Timestamp,
    Field(description="By what was known at this time. Left out: by what is known now. " + ZONED),
]


class Owner(Schema):
    """Whose graph: as with memories."""

    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    project_id: OwnId | None = None


class EntityQuery(PageQuery):
    q: Annotated[str, StringConstraints(min_length=1, max_length=200), Storable] | None = Field(
        default=None, description="A piece of its name or of an alias, in any case."
    )
    type: Type | None = None
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    project_id: OwnId | None = None
    scope: Scope | None = None


class EntityShort(ReadSchema):
    """An entity as others refer to it."""

    entity_id: str
    name: str
    entity_type: str


class EntityRead(EntityShort):
    aliases: list[str] = []
    scope: Scope
    user_id: str | None
    agent_id: str | None
    project_id: str | None
    metadata: dict[str, Any] = Field(validation_alias="metadata_")
    merged_into: str | None = Field(description="The entity it was merged into.")
    creator: str | None = Field(description="Id of the key that made it.")
    version: int
    create_time: Timestamp
    update_time: Timestamp


class EntityDetail(EntityRead):
    mentions: int = Field(default=0, description="So many memories that you may see speak of it.")


class MentionPage(ReadSchema):
    """Ids of memories that speak of an entity, the newest first."""

    items: list[str]
    next_cursor: str | None = None


class EntityPatch(Schema):
    model_config = example(name="李明", entity_type="person")

    name: Name | None = Field(default=None, description="The old name stays as an alias.")
    entity_type: Type | None = None
    metadata: Metadata | None = None


class AliasCreate(Schema):
    model_config = example(alias="Li Ming")

    alias: Name


class AliasQuery(Schema):
    alias: Name


class RelationCreate(Owner):
    """A relation between names or existing entities."""

    model_config = example(
        source="李明",
        source_type="person",
        relation="studies_at",
        destination="北京大学",
        destination_type="organization",
        user_id="ana",
    )

    source: Name | None = Field(default=None, description="Matched, or made.")
    source_id: Id | None = None
    source_type: Type = THING
    relation: Relation
    destination: Name | None = Field(default=None, description="Matched, or made.")
    destination_id: Id | None = None
    destination_type: Type = THING
    confidence: Confidence = 1.0
    valid_from: Timestamp | None = Field(default=None, description="Null: since when is unknown.")
    valid_to: Timestamp | None = None
    single: bool = Field(
        default=False,
        description="The subject has one value of this relation at a time: others end.",
    )
    scope: Scope | None = Field(default=None, description="By default that of the ids you name.")
    evidence: Ids = Field(default=[], description="Ids of messages that say so.")
    memory_ids: Ids = Field(default=[], description="Memories that say so.")

    @model_validator(mode="after")
    def _names_both(self) -> Self:
        for side in ("source", "destination"):
            named = (getattr(self, side), getattr(self, f"{side}_id"))
            if (named[0] is None) == (named[1] is None):
                raise ValueError(f"name {side} or {side}_id, and not both")
        if self.valid_from and self.valid_to and self.valid_to < self.valid_from:
            raise ValueError("valid_to must not lie before valid_from")
        return self


class RelationPatch(Schema):
    model_config = example(valid_from="2026-05-01T00:00:00Z", reason="She said so herself.")

    destination: Name | None = Field(default=None, description="Matched, or made.")
    destination_id: Id | None = None
    confidence: Confidence | None = None
    valid_from: Timestamp | None = Field(default=None, description="Null: since when is unknown.")
    valid_to: Timestamp | None = Field(default=None, description="Null: it holds still.")
    reason: Reason | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.destination is not None and self.destination_id is not None:
            raise ValueError("name destination or destination_id, and not both")
        return self


class RelationRead(ReadSchema):
    relation_id: str
    source: EntityShort
    relation: str
    destination: EntityShort
    confidence: float
    evidence: list[str] = Field(description="Ids of messages that say so.")
    memory_ids: list[str] = Field(description="Memories that say so.")
    valid_from: Timestamp | None
    valid_to: Timestamp | None
    known_from: Timestamp = Field(description="Since when this version is what is known.")
    known_to: Timestamp | None
    reason: str | None
    actor: str | None = Field(description="Id of the key that wrote this version.")
    job_id: str | None
    scope: Scope
    user_id: str | None
    agent_id: str | None
    project_id: str | None
    version: int


class RelationQuery(PageQuery):
    entity_id: Id | None = Field(default=None, description="On one of the two sides.")
    source_id: Id | None = None
    destination_id: Id | None = None
    relation: Relation | None = None
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    project_id: OwnId | None = None
    as_of: AsOf | None = None
    known_at: KnownAt | None = None
    include_closed: bool = Field(
        default=False, description="Also what holds no longer, or not yet."
    )


class WhenQuery(Schema):
    as_of: AsOf | None = None
    known_at: KnownAt | None = None


class NeighbourQuery(WhenQuery):
    entity_id: Id | None = None
    name: Name | None = Field(
        default=None,
        description="A name or an alias, instead of the id; in a graph that is named too.",
    )
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    project_id: OwnId | None = None
    depth: Depth = 1
    limit: Limit = 100
    relation: Relation | None = Field(default=None, description="Follow this one alone.")

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.entity_id is None) == (self.name is None):
            raise ValueError("name entity_id or name, and not both")
        return self


class NeighbourRead(EntityShort):
    hops: int = Field(description="Steps from where the walk began.")


class Neighbours(ReadSchema):
    """What is around, the nearest first, and the relations among all of it."""

    entities: list[NeighbourRead]
    relations: list[RelationRead]
    truncated: bool = Field(description="There is more: a limit was met.")


class PathQuery(WhenQuery):
    from_: Id = Field(alias="from")
    to: Id
    depth: Depth = MOST_DEPTH
    limit: Annotated[int, Field(ge=1, le=100)] = 10


class PathRead(ReadSchema):
    entities: list[EntityShort]
    relations: list[RelationRead]


class Paths(ReadSchema):
    """The shortest paths; none leads through one entity twice."""

    paths: list[PathRead]
    truncated: bool


class GraphSearchQuery(WhenQuery):
    q: Annotated[str, StringConstraints(min_length=1, max_length=1000), Storable] = Field(
        description="Any text; the entities it names are found by their names and aliases."
    )
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    project_id: OwnId | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class GraphFound(ReadSchema):
    entities: list[EntityShort]
    relations: list[RelationRead] = Field(description="Theirs, with others too.")
    truncated: bool


class EntityMerge(Schema):
    model_config = example(entity_ids=["ent_2"], dry_run=True)

    entity_ids: Annotated[list[Id], Field(min_length=1, max_length=50)] = Field(
        description="Merged into the entity of the path."
    )
    reason: Reason | None = None
    dry_run: bool = Field(default=False, description="Only count.")


class EntitySplit(Schema):
    model_config = example(name="李明 (Shanghai)", entity_type="person", relation_ids=["rel_1"])

    name: Name
    entity_type: Type | None = Field(default=None, description="As that of the old one.")
    aliases: Annotated[list[Name], Field(max_length=100)] = []
    relation_ids: Annotated[list[Id], Field(max_length=1000)] = []
    memory_ids: Annotated[list[Id], Field(max_length=1000)] = Field(
        default=[], description="Memories that speak of the new one, and not of the old."
    )
    reason: Reason | None = None
    dry_run: bool = Field(default=False, description="Only count.")


class ChangeRead(ReadSchema):
    """A merge or a split, in figures."""

    change_id: str | None = Field(description="Null with dry_run.")
    event: Event
    entity_ids: list[str] = Field(description="The one that stays first.")
    rows: dict[str, int] = Field(description="So many rows were touched, by what they are.")
    reason: str | None
    actor: str | None
    create_time: Timestamp | None
    undone_at: Timestamp | None
    dry_run: bool = False


class ChangeListed(ChangeRead):
    entities: list[EntityShort] = Field(description="Those of `entity_ids` that still exist.")
