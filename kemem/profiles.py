"""Answers about profiles: what is known about a user or a project, each value with its evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.answers import Answer, Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileValue(Answer):
    """One value of a profile and its origin."""

    value: Any = None
    origin: str = "derived"
    """`user`: written by a caller and never changed by a job. `derived`: written by a job."""
    memory_ids: tuple[str, ...] = ()
    deriver: str | None = None
    update_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Answer):
    """A profile. `attributes`, `sections` and `slots` are the JSON of the service; `value_of` reads
    one value.
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
        """The value of, for example, `profession`, `work_context` or `diet.allergies`; or None."""
        topic, _, sub_topic = name.partition(".")
        found: Mapping[str, Any] | None = (
            self.slots.get(topic, {}).get(sub_topic)
            if sub_topic
            else self.attributes.get(name) or self.sections.get(name)
        )
        return None if found is None else found["value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange(Answer):
    """One change of one value of a profile."""

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
    """The outcome for one fact of a memory document."""

    id: str
    event: str
    memory_id: str | None = None
    reasons: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentImported(Answer):
    """The outcome of an import, or with `dry_run` the expected one."""

    dry_run: bool = False
    facts: tuple[FactOutcome, ...] = ()
    sections: tuple[str, ...] = ()
    refused_sections: tuple[FactOutcome, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDocument(Answer):
    """A memory document in DeerFlow's format; `raw` is the document."""

    version: str = "1.0"
    lastUpdated: str = ""  # noqa: N815 (DeerFlow's name)
    user: Mapping[str, Any] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)
    facts: tuple[Any, ...] = ()
