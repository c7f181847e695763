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
    """The slots that a config names; none without the setting.

    Raises:
        InvalidConfigError: the setting is not a list of valid, distinct slots.

    """
    setting = config.get(NAME)
    if setting is None:
        return []
    if not isinstance(setting, list) or len(setting) > MOST:
        raise InvalidConfigError(NAME, _WANTED)
    slots = [_slot(entry) for entry in setting]
    if len({slot.name for slot in slots}) < len(slots):
        raise InvalidConfigError(NAME, _WANTED)
    return slots


def _slot(entry: Any) -> ProfileSlot:
    """Raises InvalidConfigError."""
    if not isinstance(entry, Mapping) or not entry.keys() <= _MEMBERS:
        raise InvalidConfigError(NAME, _WANTED)
    about, longest = entry.get("description"), entry.get("max_chars", DEFAULT_VALUE)
    topics = [entry.get("topic"), entry.get("sub_topic")]
    usable = (
        all(isinstance(word, str) and _WORD.fullmatch(word) for word in topics)
        and isinstance(about, str)
        and 1 <= len(about.strip()) <= LONGEST_ABOUT
        # An exact type: true is an int too.
        and type(longest) is int
        and 1 <= longest <= LONGEST_VALUE
    )
    if not usable:
        raise InvalidConfigError(NAME, _WANTED)
    return ProfileSlot(str(topics[0]), str(topics[1]), str(about).strip(), longest)
