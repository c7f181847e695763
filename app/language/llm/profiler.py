"""The port to whatever derives a profile from memories, and what every adapter owes its callers.

Adapters: `keyless/profile` (keyless, quotes) and `model_profiler` (any endpoint that can be chatted
with). Evidence and lengths are checked by the caller, who trusts neither.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, Protocol

from app.language.llm.extractor import ModelUse
from app.language.text.normal_forms import normalise

Subject = Literal["user", "project"]
SlotKind = Literal["text", "choice", "list", "section"]
SlotValue = str | list[str]
MemoryState = Literal["ended", "later", "overdue"]
"""What has ended, has not begun, or should have been done by now without a word of it."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One place of a profile, and what may stand there.

    Args:
        name: `attributes.profession`, `sections.work_context`, `slots.diet.allergies`.
        about: what belongs there, for a model.
        choices: of a `choice`.
        sentences: most of them that a job may write, of a `section`.
        entries: most entries of a `list`.
        characters: most of a text, or of one entry of a list.

    """

    name: str
    kind: SlotKind
    about: str
    choices: tuple[str, ...] = ()
    sentences: int | None = None
    entries: int = 0
    characters: int = 500


@dataclass(frozen=True, slots=True)
class ProfileMemory:
    """One memory, as far as a profile needs it.

    Args:
        since: when it began to hold, or was remembered.
        speaker: whose own words it is in; None in the third person.
        said_at: when that was said.
        valid_from, valid_to: when it holds, as far as somebody said so.
        due: when it is to be done, or has most likely passed.
        new: it came or changed after the last derivation.

    """

    memory_id: str
    content: str
    memory_type: str
    attribute: str | None
    confidence: float
    since: datetime
    speaker: str | None = None
    said_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    due: date | None = None
    new: bool = False

    def state(self, now: datetime) -> MemoryState | None:
        """None for what simply holds."""
        if self.valid_to is not None and self.valid_to <= now:
            return "ended"
        if self.since > now:
            return "later"
        return "overdue" if self.due is not None and self.due < now.date() else None

    @property
    def cited(self) -> str:
        """Its content; before somebody's own words stands whose they are."""
        return self.content if self.speaker is None else f"{self.speaker}: {self.content}"


def newest_day(known: Sequence[ProfileMemory], now: datetime) -> date:
    """The day on which the newest of the memories was said: what "now" is in a profile.

    Somebody may have said nothing for years, or their old conversations were imported. What
    was saved without a time was said today at the latest, and nobody knows when.
    """
    said = [memory.said_at or (now if memory.valid_from else memory.since) for memory in known]
    return min(max(said, default=now), now).date()


@dataclass(frozen=True, slots=True)
class CurrentValue:
    """What stands in a slot now.

    Args:
        written: when it was written.
        fixed: a person wrote it, and no job changes it.
        outdated: a memory that it was derived from holds no longer: without a new value it goes.

    """

    slot: str
    value: SlotValue
    memory_ids: Sequence[str] = ()
    fixed: bool = False
    outdated: bool = False
    written: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """What to derive. Memories that hold come first, of them the surest.

    Args:
        current: what stands in the slots.
        names: what the user is called, in normal form; empty where all speakers are meant.

    """

    subject: Subject
    slots: Sequence[Slot]
    known: Sequence[ProfileMemory]
    now: datetime
    current: Sequence[CurrentValue] = ()
    names: AbstractSet[str] = frozenset()

    def is_others(self, memory: ProfileMemory) -> bool:
        """Whether "I" in it is somebody else than the user whose profile this is."""
        if self.subject != "user" or memory.speaker is None or not self.names:
            return False
        return normalise(memory.speaker) not in self.names


@dataclass(frozen=True, slots=True)
class DerivedValue:
    """A value and the memories it stands on. Not yet checked."""

    slot: str
    value: SlotValue
    memory_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Derivation:
    """What was derived, and what it cost.

    Args:
        cleared: slots whose value no memory supports any more. Of slots that are named neither
            here nor in `values` nothing is said: what stands there stays.

    """

    values: Sequence[DerivedValue] = ()
    cleared: Sequence[str] = ()
    use: ModelUse = field(default_factory=ModelUse)


class Profiler(Protocol):
    """Derives profiles. One instance is shared by the whole process; calls may overlap."""

    @property
    def name(self) -> str:
        """What stands beside each value: `rules/2`, `openai/gpt-4o-mini`."""
        ...

    @property
    def model(self) -> str | None:
        """The provider's name of the model; None without one."""
        ...

    @property
    def prompt_version(self) -> str | None:
        """Version of what the model is told; None without one."""
        ...

    async def derive(self, request: ProfileRequest) -> Derivation:
        """Values of the slots that the memories tell of, by a model only of those that change.

        Raises:
            ModelUnavailableError: nothing was derived.

        """
        ...
