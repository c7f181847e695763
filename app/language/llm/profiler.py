"""The port to whatever derives a profile from memories, and what every adapter owes its callers.

Adapters: `keyless/profile` (keyless, quotes) and `model_profiler` (any endpoint that can be chatted
with). Evidence and lengths are checked by the caller, who trusts neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from app.language.llm.extractor import ModelUse

Subject = Literal["user", "project"]
SlotKind = Literal["text", "choice", "list", "section"]
SlotValue = str | list[str]


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
class KnownMemory:
    """One memory, as far as a profile needs it.

    Args:
        since: when it began to hold, or was remembered.
        speaker: whose own words it is in; None in the third person.
        said_at: when that was said.

    """

    memory_id: str
    content: str
    memory_type: str
    attribute: str | None
    confidence: float
    since: datetime
    speaker: str | None = None
    said_at: datetime | None = None

    @property
    def cited(self) -> str:
        """Its content; before somebody's own words stands whose they are."""
        return self.content if self.speaker is None else f"{self.speaker}: {self.content}"


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """What to derive. Memories come with the surest first."""

    subject: Subject
    slots: Sequence[Slot]
    known: Sequence[KnownMemory]
    now: datetime


@dataclass(frozen=True, slots=True)
class DerivedValue:
    """A value and the memories it stands on. Not yet checked."""

    slot: str
    value: SlotValue
    memory_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Derivation:
    """What was derived, and what it cost."""

    values: Sequence[DerivedValue] = ()
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
        """Values of the slots that the memories tell of; the others are left out.

        Raises:
            ModelUnavailableError: nothing was derived.

        """
        ...
