"""Slots of profiles that an agent adds to those every profile has: `config.profile_slots`. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.identity.agents.errors import InvalidConfigError

NAME: Final = "profile_slots"
MOST: Final = 50
LONGEST_ABOUT: Final = 500
LONGEST_VALUE: Final = 2_000
DEFAULT_VALUE: Final = 500

_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,49}")
_MEMBERS: Final = {"topic", "sub_topic", "description", "max_chars"}
_WANTED: Final = (
    f"a list of at most {MOST} objects with `topic` and `sub_topic` (small letters, digits and _, "
    f"at most 50, each pair once), `description` (1 to {LONGEST_ABOUT} characters) and, if you "
    f"like, `max_chars` (1 to {LONGEST_VALUE})"
)


@dataclass(frozen=True, slots=True)
class ProfileSlot:
    """One topic of an application's own: `diet` / `allergies`."""

    topic: str
    sub_topic: str
    description: str
    max_chars: int = DEFAULT_VALUE

    @property
    def name(self) -> str:
        return f"slots.{self.topic}.{self.sub_topic}"


def profile_slots(config: Mapping[str, Any]) -> list[ProfileSlot]:
    """The slots that a config names. Raises InvalidConfigError."""
    told = config.get(NAME)
    if told is None:
        return []
    if not isinstance(told, list) or len(told) > MOST:
        raise InvalidConfigError(NAME, _WANTED)
    slots = [_slot(one) for one in told]
    if len({slot.name for slot in slots}) < len(slots):
        raise InvalidConfigError(NAME, _WANTED)
    return slots


def _slot(one: Any) -> ProfileSlot:
    if not isinstance(one, Mapping) or not one.keys() <= _MEMBERS:
        raise InvalidConfigError(NAME, _WANTED)
    about, longest = one.get("description"), one.get("max_chars", DEFAULT_VALUE)
    words = [one.get("topic"), one.get("sub_topic")]
    usable = (
        all(isinstance(word, str) and _WORD.fullmatch(word) for word in words)
        and isinstance(about, str)
        and 1 <= len(about.strip()) <= LONGEST_ABOUT
        # An exact type: true is an int too.
        and type(longest) is int
        and 1 <= longest <= LONGEST_VALUE
    )
    if not usable:
        raise InvalidConfigError(NAME, _WANTED)
    return ProfileSlot(str(words[0]), str(words[1]), str(about).strip(), longest)
