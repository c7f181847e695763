"""One run's work, from what was read to what came of it. Pure."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Principal
from app.language.llm.extractor import ExtractionRequest, Malformed
from app.memory.extraction.drafts import Draft
from app.memory.extraction.judging import Hearing
from app.platform.jobs.orders import ClaimedJob

Trigger = Literal["automatic", "continued", "explicit", "end", "infer", "rescue"]


class MovedError(Exception):
    """What a run decided about has changed since; it decides again."""


class BarredError(MovedError):
    """Whoever was heard may not write into the project any more; it decides without it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Messages of a session: those after `read` up to `last`."""

    session_id: str
    read: int
    last: int


@dataclass(frozen=True, slots=True)
class Work:
    """What a run reads, for whom, and why.

    Args:
        span: the messages of a session; None for messages of a request.
        agent_id: the agent in the conversation, for the log.
        base: columns that every new memory gets, such as the request's metadata.
        summary: whether it is the experience of an ended session that is asked for.
        graph: whether relations go into the graph.
        hold: keeps what is read where it is, first in the transaction that stores; what it
            raises stores nothing.

    """

    principal: Principal
    hearing: Hearing
    request: ExtractionRequest
    trigger: Trigger
    agent_id: str | None = None
    span: Span | None = None
    job: ClaimedJob | None = None
    base: Mapping[str, Any] = field(default_factory=dict)
    summary: bool = False
    graph: bool = True
    hold: Callable[[AsyncSession], Awaitable[None]] | None = None

    @property
    def job_id(self) -> str | None:
        return None if self.job is None else self.job.job_id

    @property
    def characters(self) -> int:
        """How much text there is to judge."""
        said = (turn.content for turn in self.request.turns)
        return sum(map(len, said)) + sum(map(len, self.hearing.said_back))


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run."""

    run_id: str
    extractor: str
    drafts: Sequence[Draft]
    malformed: Sequence[Malformed] = ()
    upkeep: dict[str, Any] = field(default_factory=dict)
    """What was looked at besides, counted."""
    names: dict[str, Any] = field(default_factory=dict)
    """Vectors of the names in relations, by their normal form."""
    graph: dict[str, int] = field(default_factory=dict)
    """What the graph learned, counted."""

    @property
    def events(self) -> dict[str, int]:
        """How many proposals ended as what."""
        counts = Counter(draft.event or "ADD" for draft in self.drafts)
        counts["REJECT"] += len(self.malformed)
        return {event: count for event, count in sorted(counts.items()) if count}

    def result(self) -> dict[str, Any]:
        """What a job's row says of it: ids and counts, no words."""
        besides = {"upkeep": self.upkeep, "graph": self.graph}
        return {name: counts for name, counts in besides.items() if counts} | {
            "run_id": self.run_id,
            "extractor": self.extractor,
            "events": self.events,
            "memory_ids": sorted(
                {draft.memory_id for draft in self.drafts if draft.memory_id is not None}
            ),
        }
