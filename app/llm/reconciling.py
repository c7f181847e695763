"""The port to whatever decides how new statements change what is remembered (B-01).

Adapters: `rules/reconciler` (keyless) and `llm/model_reconciler`. What one decides is a
wish: ids outside the candidates are refused, protected memories stay, and removals are
counted, all in code afterwards (`design.md` 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from app.llm.extraction import ModelUse, Proposed

ReconcileEvent = Literal["ADD", "UPDATE", "SUPERSEDE", "MERGE", "DELETE", "NONE"]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory that a proposal might concern.

    Args:
        similarity: cosine to the proposal, 0 to 1.
        possible_duplicate: at or above the embedder's threshold.
        protected: a person saved it, or it is a correction: it may be repeated (NONE), and
            nothing else; but a correction may mend an earlier one that nobody saved by hand.
        saved_by_person: it was not extracted.

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


@dataclass(frozen=True, slots=True)
class Question:
    """One proposal and its neighbours, nearest first."""

    proposed: Proposed
    neighbours: Sequence[Neighbour]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to become of one proposal.

    ADD       it is new.
    UPDATE    it says one neighbour more precisely; `content` is the new text.
    SUPERSEDE one neighbour held until now, this holds from now on.
    MERGE     it and several neighbours become one; `content` is the text of all.
    DELETE    one neighbour holds no longer, and nothing takes its place.
    NONE      a neighbour says so already, or there is nothing to retract.

    Args:
        memory_ids: of neighbours of this question; empty for ADD.
        content: for UPDATE and MERGE.
        reason: a short sentence for the history.

    """

    event: ReconcileEvent
    memory_ids: tuple[str, ...] = ()
    content: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """One decision per question, in the order of the questions."""

    decisions: tuple[Decision, ...]
    use: ModelUse = field(default_factory=ModelUse)


class Reconciler(Protocol):
    """Decides. Shared by the process; calls may overlap and may be cancelled."""

    @property
    def name(self) -> str:
        """As an extractor's."""
        ...

    @property
    def model(self) -> str | None: ...

    async def reconcile(self, questions: Sequence[Question]) -> Reconciliation:
        """One decision per question; questions without neighbours need not be asked.

        Raises:
            ModelUnavailableError: nothing was decided; try again.

        """
        ...
