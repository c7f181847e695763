"""The types of events that the service publishes, and what an event may carry."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from app.platform.values.fields import is_own_id

PublishedType = Literal[
    "memory.added",
    "memory.updated",
    "memory.superseded",
    "memory.deleted",
    "memory.rejected",
    "extraction.failed",
    "session.compacted",
    "job.dead",
]
"""Types that a webhook can subscribe to."""

EventType = Literal[PublishedType, "webhook.test"]

EVERY_TYPE = "*"
"""In a webhook's list: all types, those of later releases too."""

OWN_IDS = frozenset({"user_id", "agent_id", "project_id", "session_id", "scope_id"})
"""What an event names by an id that a caller chose, in any script."""

# Ids of ours, codes, model names and times match; a sentence does not, in any language.
_CODE = re.compile(r"[A-Za-z0-9._:@|+=~/-]{1,255}\Z")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, as receivers get it.

    Args:
        data: ids, codes and numbers. Never content: a receiver that may read it fetches the
            memory, so content that was deleted meanwhile is not sent.
        user_id: the user it is about, so that an erasure finds pending deliveries.

    """

    type: EventType
    data: Mapping[str, JsonValue]
    user_id: str | None = None

    def __post_init__(self) -> None:
        if not all(_may_carry(name, value) for name, value in self.data.items()):
            raise ValueError(f"an event {self.type} may carry ids, codes and numbers alone")
        if self.data.get("user_id") not in {None, self.user_id}:
            raise ValueError(f"an event {self.type} names a user and hides it from erasures")


def _may_carry(name: str, value: JsonValue) -> bool:
    if name in OWN_IDS and isinstance(value, str):
        return is_own_id(value)
    return _is_code(value)


def _is_code(value: JsonValue) -> bool:
    if isinstance(value, str):
        return _CODE.match(value) is not None
    if isinstance(value, list):
        return all(_is_code(item) for item in value)
    if isinstance(value, dict):
        return all(_is_code(part) for pair in value.items() for part in pair)
    return True
