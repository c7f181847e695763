"""The port to whatever decides how new statements change what is remembered.

Adapters: `rules/reconciler` (keyless) and `llm/model_reconciler`. What one decides is a
wish: ids outside the candidates are refused, protected memories stay, and removals are
counted, all in code afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final, Literal, Protocol

from app.language.llm.extractor import ModelUse, Proposed, due_of

ReconcileEvent = Literal["ADD", "UPDATE", "SUPERSEDE", "MERGE", "DELETE", "NONE"]
ReviewVerdict = Literal["KEEP", "EXTEND", "REMOVE"]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory that a proposal might concern.

    Args:
        similarity: cosine to the proposal, 0 to 1.
        possible_duplicate: at or above the embedder's threshold.
        protected: a person saved it, or it is a correction: it may be repeated (NONE), and
            nothing else; but a correction may mend an earlier one that nobody saved by hand.
        saved_by_person: it was not extracted.
        said_at: when the newest message that says it was said; None where it was saved as it is.
        speaker: whose own words it is in; None in the third person.

    """

    memory_id: str
    content: str
    memory_type: str
    confidence: float
    similarity: float
    possible_duplicate: bool = False
    protected: bool = False
    saved_by_person: bool = False
    attribute: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    create_time: datetime | None = None
    said_at: datetime | None = None
    speaker: str | None = None
    expected_valid_days: int | None = None

    def is_by_another(self, new: Proposed) -> bool:
        """Tell whether each is in the own words of somebody else, whose "I" is not the same."""
        return None not in {self.speaker, new.speaker} and self.speaker != new.speaker

    @property
    def due(self) -> datetime | None:
        """When it has most likely passed, or is to be done; None where nobody could tell."""
        return due_of(self.said_at or self.create_time, self.expected_valid_days)

    @property
    def said(self) -> datetime | None:
        """When it was said, as far as is known: as `validity_sql` tells which one is newer."""
        return self.said_at or self.valid_from or self.create_time


@dataclass(frozen=True, slots=True)
class ReconcileQuestion:
    """One proposal and its neighbours, nearest first.

    Args:
        statement_id: by which a later question may have this one among its neighbours, and its
            decision name it.

    """

    proposed: Proposed
    neighbours: Sequence[Neighbour]
    statement_id: str = ""


@dataclass(frozen=True, slots=True)
class Remainder:
    """What else a memory says that a decision ends, and still holds.

    Args:
        attribute: what the remainder gives the value of; None where it is the value of nothing.
        inherits: whether nobody was asked that, and it has the attribute of its memory.

    """

    memory_id: str
    content: str
    attribute: str | None = None
    inherits: bool = False


@dataclass(frozen=True, slots=True)
class ReconcileDecision:
    """What is to become of one proposal.

    ADD       it is new.
    UPDATE    it says one neighbour more precisely; `content` is the new text.
    SUPERSEDE neighbours held until now, this holds from now on.
    MERGE     it and several neighbours become one; `content` is the text of all.
    DELETE    neighbours hold no longer, and nothing takes their place.
    NONE      a neighbour says so already, or there is nothing to retract.

    Args:
        memory_ids: of neighbours of this question, and with a model of others of the same call;
            empty for ADD.
        content: for UPDATE and MERGE.
        reason: a short sentence for the history.
        conflicts: for ADD and SUPERSEDE: neighbours that may contradict it, where nothing tells
            which holds. They stay.
        remainders: for SUPERSEDE and DELETE: what of the neighbours still holds.
        keeps_start: for SUPERSEDE: it says what they say and more, so it holds for as long.

    """

    event: ReconcileEvent
    memory_ids: tuple[str, ...] = ()
    content: str | None = None
    reason: str = ""
    conflicts: tuple[str, ...] = ()
    remainders: tuple[Remainder, ...] = ()
    keeps_start: bool = False


@dataclass(frozen=True, slots=True)
class AgendaMemory:
    """A memory that is looked at whatever the new statements say.

    Args:
        days: since it was last said, changed or reviewed.
        expected_valid_days: how long it was thought to hold, where somebody could tell.

    """

    memory_id: str
    content: str
    memory_type: str
    confidence: float
    days: int = 0
    expected_valid_days: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Agenda:
    """What a model looks at besides, in a call that is made anyway.

    Args:
        today: the day on which the newest of the statements was said.
        due: memories nobody has spoken of for long, the stalest first.
        parts: memories of one type, some of which may be one matter in pieces.

    """

    today: date | None = None
    due: tuple[AgendaMemory, ...] = ()
    parts: tuple[AgendaMemory, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.due or self.parts)


NO_AGENDA: Final = Agenda()


@dataclass(frozen=True, slots=True)
class Review:
    """What is to become of one memory that was due.

    KEEP    nobody can tell that it is over.
    EXTEND  it holds, and for longer than was thought.
    REMOVE  it is over.
    """

    memory_id: str
    verdict: ReviewVerdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Join:
    """Several memories that are to become one.

    Args:
        memory_ids: of the parts; empty where one was named that was not shown.
        confidence: how sure the whole is; None where nothing was said.

    """

    memory_ids: tuple[str, ...]
    content: str
    confidence: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """One decision per question, in the order of the questions, and what became of the agenda:
    a memory without a review is kept.
    """

    decisions: tuple[ReconcileDecision, ...]
    use: ModelUse = field(default_factory=ModelUse)
    reviews: tuple[Review, ...] = ()
    joins: tuple[Join, ...] = ()


class Reconciler(Protocol):
    """Decides. Shared by the process; calls may overlap and may be cancelled."""

    @property
    def name(self) -> str:
        """As an extractor's."""
        ...

    @property
    def model(self) -> str | None:
        """The provider's name of the model; None without one."""
        ...

    @property
    def prompt_version(self) -> str | None:
        """As an extractor's."""
        ...

    async def reconcile(
        self,
        questions: Sequence[ReconcileQuestion],
        agenda: Agenda = NO_AGENDA,
        besides: Sequence[Neighbour] = (),
    ) -> Reconciliation:
        """One decision per question, in the order of what was said; questions without neighbours
        need not be asked.

        Args:
            agenda: what a model that is asked looks at besides. It is no reason to ask one,
                and without a model nothing on it changes.
            besides: what else is remembered, near to no question, that a model may name as well.

        Raises:
            ModelUnavailableError: nothing was decided; try again.

        """
        ...
