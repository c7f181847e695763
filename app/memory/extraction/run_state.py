"""The state of one run: what it reads and for whom, and what each stage has added. Pure values;
a stage takes a state and returns the next one.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Principal
from app.identity.usage.paid_answers import AnswerPurpose
from app.language.llm.embedder import Embedder
from app.language.llm.errors import AnswerFault
from app.language.llm.extractor import Extraction, ExtractionRequest, Malformed, Scope
from app.language.llm.model_catalogue import ExtractionModel
from app.memory.extraction.drafts import Buckets, Draft, barred, by_owner
from app.memory.extraction.evidence import EvidenceContext
from app.platform.jobs.orders import ClaimedJob
from app.platform.plugins.runner import NO_CHAIN, ProcessorChain

Trigger = Literal["automatic", "continued", "explicit", "end", "infer", "rescue", "reread"]


class NeighboursMovedError(Exception):
    """What a run decided about has changed since; it decides again."""


class ProjectBarredError(NeighboursMovedError):
    """Whoever was heard may not write into the project any more; it decides without it."""


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """Messages of a session: those after `read` up to `last`."""

    session_id: str
    read: int
    last: int


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run reads, for whom, and why.

    Args:
        context: what its proposals are judged by.
        reading: what the extractor is asked.
        span: the messages of a session; None for messages of a request.
        agent_id: the agent in the conversation, for the log.
        base: columns that every new memory gets, such as the request's metadata.
        cut: how many messages are longer than what is read of them.
        summary: whether it is the experience of an ended session that is asked for.
        graph: whether relations go into the graph.
        preview: nothing is stored, so it is not in the log of runs either.
        ignored: memories that are about to be replaced, which decide nothing.
        kept: extracted memories that are as safe as what a person saved.
        hold: keeps what is read where it is, first in the transaction that stores; what it
            raises stores nothing.
        ends_work: whether nothing of the job would be repeated once it is stored; else models'
            answers are kept beyond it.

    """

    principal: Principal
    context: EvidenceContext
    reading: ExtractionRequest
    trigger: Trigger
    agent_id: str | None = None
    span: MessageSpan | None = None
    job: ClaimedJob | None = None
    base: Mapping[str, Any] = field(default_factory=dict)
    cut: int = 0
    summary: bool = False
    graph: bool = True
    preview: bool = False
    ignored: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    hold: Callable[[AsyncSession], Awaitable[None]] | None = None
    ends_work: bool = True

    @property
    def job_id(self) -> str | None:
        """Of the job that asked for it; None inside a request."""
        return None if self.job is None else self.job.job_id

    @property
    def operation(self) -> Literal["extract", "summarise"]:
        """What the tenant's usage calls it."""
        return "summarise" if self.summary else "extract"

    @property
    def characters(self) -> int:
        """How much text there is to judge."""
        said = (turn.content for turn in self.reading.turns)
        return sum(map(len, said)) + sum(map(len, self.context.said_back))


@dataclass(frozen=True, slots=True)
class RunState:
    """What is known of a run before it is stored; the comments say which stage adds what.

    The rounds of comparing and deciding leave it as it is, so that a round that is undone is
    forgotten whole.
    """

    request: RunRequest
    model: ExtractionModel
    # Filter: the agent's processors, and whether they left nothing to read.
    chain: ProcessorChain = NO_CHAIN
    silenced: bool = False
    # Extract: what models' answers are kept for, the id under which the answer is logged, and the
    # answer.
    purpose: AnswerPurpose | None = None
    extraction_id: str = ""
    extraction: Extraction = field(default_factory=lambda: Extraction(()))
    # Evidence and gate: one draft per proposal, in order.
    drafts: tuple[Draft, ...] = ()
    # Embed: who made the vectors of the open drafts' texts, and those of the names in their
    # relations, by normal form.
    chosen_embedder: Embedder | None = None
    name_vectors: Mapping[str, Any] = field(default_factory=dict)
    # Reconcile: why rules decide, where the model's decisions could not be used.
    fault: AnswerFault | Literal["too_long"] | None = None

    @property
    def open_drafts(self) -> tuple[Draft, ...]:
        """What is still to be decided, in order."""
        return tuple(draft for draft in self.drafts if draft.open)

    @property
    def buckets(self) -> Buckets:
        """What is open, by where it would be stored."""
        return by_owner(self.open_drafts)

    @property
    def embedder(self) -> Embedder:
        """Who made the vectors; there is none before that stage."""
        assert self.chosen_embedder is not None  # noqa: S101 (the stages have one order)
        return self.chosen_embedder

    def without(self, scope: Scope) -> Self:
        """With what is still open of this scope refused."""
        left = tuple(name for name in self.request.context.scopes.names if name != scope)
        return replace(self, drafts=barred(self.drafts, left))


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run.

    Args:
        maintenance: what was looked at besides, counted.
        graph: what the graph learned, counted.
        cut: how many messages are longer than what was read of them.
        experienced: whether what the session taught is among it, or that it taught nothing.
        taught: whether what was read taught anything; None where that is not known.
        fault: why rules decided instead of the model; None where they did not.

    """

    extraction_id: str
    extractor: str
    drafts: tuple[Draft, ...]
    malformed: Sequence[Malformed] = ()
    maintenance: Mapping[str, Any] = field(default_factory=dict)
    graph: Mapping[str, int] = field(default_factory=dict)
    cut: int = 0
    experienced: bool = False
    taught: bool | None = None
    fault: AnswerFault | Literal["too_long"] | None = None

    @property
    def events(self) -> dict[str, int]:
        """How many proposals ended as what."""
        counts = Counter(draft.event or "ADD" for draft in self.drafts)
        counts["REJECT"] += len(self.malformed)
        return {event: count for event, count in sorted(counts.items()) if count}

    def summary(self) -> dict[str, Any]:
        """What a job's row says of it: ids and counts, no words."""
        besides = {
            "upkeep": dict(self.maintenance),
            "graph": dict(self.graph),
            "warnings": {"message_not_read_whole": self.cut} if self.cut else {},
            "decided_by_rules": self.fault,
        }
        return {name: value for name, value in besides.items() if value} | {
            "extraction_id": self.extraction_id,
            # Deprecated: its former name.
            "run_id": self.extraction_id,
            "extractor": self.extractor,
            "events": self.events,
            "memory_ids": sorted(
                {draft.memory_id for draft in self.drafts if draft.memory_id is not None}
            ),
        }


def replaced(drafts: Iterable[Draft], later: Iterable[Draft]) -> tuple[Draft, ...]:
    """The drafts, in order, each as `later` has it where it is there."""
    known = {draft.index: draft for draft in later}
    return tuple(known.get(draft.index, draft) for draft in drafts)


def session_purpose(session_id: str) -> str:
    """What the answers of runs that read a session are kept for."""
    return f"session:{session_id}"


def job_purpose(job_id: str) -> str:
    """What the answers of a job that reads no session are kept for."""
    return f"job:{job_id}"


Finish = Callable[[AsyncSession, RunResult], Awaitable[None]]
"""What else belongs into the transaction that stores a run: watermark, job, answer."""
