"""What the service tells of: the kinds of event, and what one may carry."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

ToldType = Literal[
    "memory.added",
    "memory.updated",
    "memory.superseded",
    "memory.deleted",
    "memory.rejected",
    "extraction.failed",
    "session.compacted",
    "job.dead",
]
"""What a webhook may ask for by name."""

EventType = Literal[ToldType, "webhook.test"]

EVERY_TYPE = "*"
"""Stands in a webhook's list for all types, those of later releases too."""

# Ids, codes, model names and moments look like this; a sentence does not, in any language.
_CODE = re.compile(r"[A-Za-z0-9._:@|+=~/-]{1,255}\Z")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, as receivers are told.

    Args:
        data: ids, codes and numbers. Never words: a receiver that may read them fetches the
            memory, and what was deleted meanwhile is not told any more.
        user_id: whom it is about, so that an erasure finds what is still to be told.

    """

    type: EventType
    data: Mapping[str, JsonValue]
    user_id: str | None = None

    def __post_init__(self) -> None:
        if not all(_is_wordless(value) for value in self.data.values()):
            raise ValueError(f"an event {self.type} may carry ids, codes and numbers alone")
        if self.data.get("user_id") not in {None, self.user_id}:
            raise ValueError(f"an event {self.type} names a user and hides it from erasures")


def _is_wordless(value: JsonValue) -> bool:
    if isinstance(value, str):
        return _CODE.match(value) is not None
    if isinstance(value, list):
        return all(_is_wordless(one) for one in value)
    if isinstance(value, dict):
        return all(_is_wordless(one) for pair in value.items() for one in pair)
    return True
