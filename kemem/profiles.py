"""Profiles: what is known of a user or a project, value by value, and what each stands on."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.reading import Answer, Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileValue(Answer):
    """One value, and where it is from."""

    value: Any = None
    origin: str = "derived"
    """`user`: written by somebody, and never changed by a job."""
    memory_ids: tuple[str, ...] = ()
    deriver: str | None = None
    update_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Answer):
    """A profile as it is now; `attributes`, `sections` and `slots` are as the service has them,
    and `value_of` reads one.
    """

    user_id: str | None = None
    project_id: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    sections: Mapping[str, Any] = field(default_factory=dict)
    slots: Mapping[str, Any] = field(default_factory=dict)
    key_decisions: ProfileValue | None = None
    instructions: str | None = None
    version: int = 0
    derived_until: datetime | None = None
    create_time: datetime | None = None
    update_time: datetime | None = None

    def value_of(self, name: str) -> Any:
        """What stands in `profession`, `work_context` or `diet.allergies`; None for nothing."""
        topic, _, sub_topic = name.partition(".")
        found: Mapping[str, Any] | None = (
            self.slots.get(topic, {}).get(sub_topic)
            if sub_topic
            else self.attributes.get(name) or self.sections.get(name)
        )
        return None if found is None else found["value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange(Answer):
    """One change of one value."""

    history_id: str
    slot: str
    event: str
    before: Any = None
    after: Any = None
    origin: str = "derived"
    memory_ids: tuple[str, ...] = ()
    reason: str | None = None
    actor: str | None = None
    job_id: str | None = None
    version: int = 0
    create_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.version} {self.event} {self.slot}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfileHistory(Listing[ProfileChange]):
    """Changes of a profile, newest first."""

    results: tuple[ProfileChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FactOutcome(Answer):
    """What became of one fact of a memory document."""

    id: str
    event: str
    memory_id: str | None = None
    reasons: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentImported(Answer):
    """What became of a memory document, or with `dry_run` would."""

    dry_run: bool = False
    facts: tuple[FactOutcome, ...] = ()
    sections: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDocument(Answer):
    """DeerFlow's memory document; `raw` is it."""

    version: str = "1.0"
    lastUpdated: str = ""  # noqa: N815 (DeerFlow's name)
    user: Mapping[str, Any] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)
    facts: tuple[Any, ...] = ()
