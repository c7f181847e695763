"""Profiles, their jobs and their settings as mem0's clients send and read them."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, JsonValue, StringConstraints, model_validator

from app.platform.values.fields import (
    Composed,
    Document,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)

ProfileStatus = Literal["succeeded", "pending", "failed", "not_enabled", "insufficient_data"]
JobStatus = Literal["pending", "running", "succeeded", "failed"]
Operation = Literal["trigger", "sample"]

MOST_SAMPLED: Final = 10
SAMPLED: Final = 3
"""Users of a sample that does not say how many."""

EntityId = Annotated[str, StringConstraints(min_length=1, max_length=255), Composed, Storable]


class Mem0Profile(ReadSchema):
    profile: dict[str, Any]
    status: ProfileStatus = Field(description="`succeeded`: something is known.")
    entity_type: Literal["user"] = "user"
    entity_id: str
    updated_at: Timestamp | None
    generation_count: int = Field(description="How often the profile has changed.")
    error: str | None = None


class Mem0ProfileJobCreate(Schema):
    model_config = example(operation="trigger", entity_type="user", entity_id="ana")

    operation: Operation
    entity_type: Literal["user"]
    entity_id: EntityId | None = Field(default=None, description="Of a trigger.")
    limit: Annotated[int, Field(ge=1, le=MOST_SAMPLED)] | None = Field(
        default=None, description=f"Of a sample: how many users, {SAMPLED} unless said otherwise."
    )

    @model_validator(mode="after")
    def _says_whose(self) -> Self:
        if self.operation == "trigger" and (self.entity_id is None or self.limit is not None):
            raise ValueError("a trigger names an entity_id and no limit")
        if self.operation == "sample" and self.entity_id is not None:
            raise ValueError("a sample names no entity_id")
        return self


class Mem0ProfileJob(ReadSchema):
    job_id: str
    status: Literal["pending", "running"]
    status_url: str
    operation: Operation
    entity_type: Literal["user"] = "user"
    entity_count_reserved: int
    event_id: None = None
    replayed: bool = False
    sampled: int | None = None
    entity_ids: list[str] | None = None


class Mem0ProfileProgress(ReadSchema):
    id: str
    operation: Operation
    entity_type: Literal["user"] = "user"
    status: JobStatus
    total: int
    enumeration_complete: bool = True
    completed: int
    succeeded: int
    failed: int
    skipped: int = Field(description="Cancelled.")


class Mem0ProfileJobRead(ReadSchema):
    job: Mem0ProfileProgress


class EntitySettings(Schema):
    """Null removes; what is left out stays."""

    schema_: Document | None = Field(default=None, alias="schema")
    custom_instructions: JsonValue = None


class EntitiesSettings(Schema):
    user: EntitySettings = EntitySettings()


class Mem0ProfileSettings(Schema):
    model_config = example(
        enabled=True,
        entities={
            "user": {
                "schema": {
                    "type": "object",
                    "properties": {"diet": {"type": "string", "description": "What they eat."}},
                }
            }
        },
    )

    enabled: bool | None = None
    entities: EntitiesSettings = EntitiesSettings()


class Mem0ProfileSettingsRead(ReadSchema):
    enabled: bool = True
    entities: dict[str, dict[str, Any]]
    capabilities: dict[str, bool]
