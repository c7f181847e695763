"""Rows of a profile as they are shown. Pure."""

from collections.abc import Sequence
from typing import Any

from app.memory.profiles.models import Profile, ProfileValue
from app.memory.profiles.schemas import ProjectProfileRead, UserProfileRead, ValueRead
from app.memory.profiles.slots import ATTRIBUTES, DECISIONS, SECTIONS, SLOTS


def user_profile(
    user_id: str, profile: Profile | None, rows: Sequence[ProfileValue]
) -> UserProfileRead:
    """A user's; empty where there is none."""
    groups = _grouped(rows)
    slots: dict[str, dict[str, ValueRead]] = {}
    for name, value in groups.get(SLOTS, {}).items():
        topic, _, sub_topic = name.partition(".")
        slots.setdefault(topic, {})[sub_topic] = value
    return UserProfileRead(
        user_id=user_id,
        attributes=groups.get(ATTRIBUTES, {}),
        sections=groups.get(SECTIONS, {}),
        slots=slots,
        instructions=None if profile is None else profile.instructions,
        **_of(profile),
    )


def project_profile(
    project_id: str, profile: Profile | None, rows: Sequence[ProfileValue]
) -> ProjectProfileRead:
    """A project's; empty where there is none."""
    groups = _grouped(rows)
    return ProjectProfileRead(
        project_id=project_id,
        attributes=groups.get(ATTRIBUTES, {}),
        key_decisions=groups.get(DECISIONS, {}).get(""),
        **_of(profile),
    )


def _grouped(rows: Sequence[ProfileValue]) -> dict[str, dict[str, ValueRead]]:
    groups: dict[str, dict[str, ValueRead]] = {}
    for row in rows:
        group, _, name = row.slot.partition(".")
        groups.setdefault(group, {})[name] = ValueRead.model_validate(row)
    return groups


def _of(profile: Profile | None) -> dict[str, Any]:
    if profile is None:
        return {"version": 0}
    names = ("version", "derived_until", "create_time", "update_time")
    return {name: getattr(profile, name) for name in names}
