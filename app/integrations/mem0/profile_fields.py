"""mem0's JSON Schema of a profile, as slots of the agent that users have unless they name one.
Pure.

A property of the schema is a slot of the topic TOPIC. The fields that every profile has besides
are in the profile whatever the schema says.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.identity.agents.profile_slots import LONGEST_ABOUT, MOST, ProfileSlot
from app.integrations.mem0.counterpart_errors import NoCounterpartError
from app.memory.profiles.schemas import UserProfileRead

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
