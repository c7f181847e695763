"""Profiles, their jobs and their settings as mem0's clients send and read them, and their JSON
Schema of a profile as slots of the agent that users have unless they name one.

A property of the schema is a slot of the topic TOPIC. The fields that every profile has besides
are in the profile whatever the schema says.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, JsonValue, StringConstraints, model_validator

from app.identity.agents.config import LONGEST_ABOUT, MOST, ProfileSlot
from app.integrations.mem0.errors import NoCounterpartError
from app.memory.profiles.schemas import UserProfileRead
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


TOPIC: Final = "profile"

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,49}")
_NOTES: Final = {"title", "description", "$schema", "$id", "examples"}
"""What a schema may say about itself without asking for anything."""


def slots_of(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`profile_slots` for the properties of a schema, in their order.

    Raises:
        NoCounterpartError: it asks for more than texts with a name and a description.

    """
    _refuse_others("The schema", schema, {"type", "properties"})
    properties = schema.get("properties")
    if schema.get("type", "object") != "object" or not isinstance(properties, dict):
        raise NoCounterpartError("A schema without an object's properties", "Name them.")
    if len(properties) > MOST:
        raise NoCounterpartError(f"A schema of more than {MOST} properties", "Leave some out.")
    return [_slot(name, wanted) for name, wanted in properties.items()]


def _slot(name: str, wanted: Any) -> dict[str, Any]:
    """Raises NoCounterpartError."""
    where = f"The property {name[:50]}"
    if not _NAME.fullmatch(name):
        raise NoCounterpartError(where, "A name has small letters, digits and _, at most 50.")
    if not isinstance(wanted, dict) or wanted.get("type") != "string":
        raise NoCounterpartError(f"{where} as other than a text", 'Say `"type": "string"`.')
    _refuse_others(where, wanted, {"type"})
    about = wanted.get("description")
    if not isinstance(about, str) or not 1 <= len(about.strip()) <= LONGEST_ABOUT:
        raise NoCounterpartError(
            f"{where} without a description", f"Describe it in 1 to {LONGEST_ABOUT} characters."
        )
    return {"topic": TOPIC, "sub_topic": name, "description": about.strip()}


def _refuse_others(where: str, said: Mapping[str, Any], known: set[str]) -> None:
    """Raises NoCounterpartError."""
    for word in said:
        if word not in known | _NOTES:
            raise NoCounterpartError(f"{where} with `{word[:50]}`", "Leave it out.")


def schema_of(slots: Sequence[ProfileSlot]) -> dict[str, Any] | None:
    """The schema whose properties these slots are; None where there are none."""
    properties = {
        slot.sub_topic: {"type": "string", "description": slot.description}
        for slot in slots
        if slot.topic == TOPIC
    }
    return {"type": "object", "properties": properties} if properties else None


def content_of(profile: UserProfileRead) -> dict[str, Any]:
    """What is known of a user, by field; the properties of the schema beside our own fields."""
    own = {**profile.attributes, **profile.sections}
    content = {name: value.value for name, value in own.items()}
    for topic, values in profile.slots.items():
        known = {name: value.value for name, value in values.items()}
        content |= known if topic == TOPIC else {topic: known}
    if profile.instructions is not None:
        content["instructions"] = profile.instructions
    return content
