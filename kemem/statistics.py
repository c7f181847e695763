"""Answers about statistics: whether what is remembered is found, and used."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar, Literal

from kemem.answers import Answer, Listing

GroupBy = Literal["day", "agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFigures(Answer):
    """Searches or contexts: how many, how many found something fitting, and how long they took."""

    count: int = 0
    queries: int = 0
    hits: int = 0
    hit_rate: float | None = None
    p50_ms: float | None = None
    """An estimate, as is `p95_ms`."""
    p95_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFigures(Answer):
    """Memories that contexts showed, each counted once a session, and how many were used."""

    injected: int = 0
    used: int = 0
    used_estimated: int = 0
    use_rate: float | None = None
    use_rate_estimated: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFigures(Answer):
    """What was searched, and what was used of it."""

    searches: SearchFigures = field(default_factory=SearchFigures)
    contexts: SearchFigures = field(default_factory=SearchFigures)
    items: ItemFigures = field(default_factory=ItemFigures)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectItem(EffectFigures):
    """Figures of one day, or of one agent."""

    day: date | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Effect(Listing[EffectItem]):
    """Figures by day, oldest first, or by agent."""

    rows_key: ClassVar[str] = "items"
    results: tuple[EffectItem, ...] = ()
    since: date
    until: date
    totals: EffectFigures = field(default_factory=EffectFigures)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalFigures(Answer):
    """Verdicts of the gate; one refusal may break several rules."""

    accepted: int = 0
    rejected: int = 0
    by_code: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalItem(RefusalFigures):
    """Verdicts of one day, or of one agent."""

    day: date | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Refusals(Listing[RefusalItem]):
    """Verdicts by day, oldest first, or by agent."""

    rows_key: ClassVar[str] = "items"
    results: tuple[RefusalItem, ...] = ()
    since: date
    until: date
    totals: RefusalFigures = field(default_factory=RefusalFigures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionFigures(Answer):
    """Runs that read conversations. Times are estimates."""

    runs: int = 0
    failed: int = 0
    messages: int = 0
    proposals: int = 0
    lag_p50_ms: float | None = None
    lag_p95_ms: float | None = None
    duration_p50_ms: float | None = None
    duration_p95_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionItem(ExtractionFigures):
    """Runs of one day, or of one agent."""

    day: date | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExtractionStatistics(Listing[ExtractionItem]):
    """Runs by day, oldest first, or by agent."""

    rows_key: ClassVar[str] = "items"
    results: tuple[ExtractionItem, ...] = ()
    since: date
    until: date
    totals: ExtractionFigures = field(default_factory=ExtractionFigures)


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateFigures(Answer):
    """Of a sample, how many memories say the same as another: an estimate."""

    day: date
    sampled: int = 0
    found: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFigures(Answer):
    """What is remembered. All but `by_status` counts active memories."""

    day: date
    total: int = 0
    by_status: Mapping[str, int] = field(default_factory=dict)
    by_memory_type: Mapping[str, int] = field(default_factory=dict)
    never_used: int = 0
    in_conflict: int = 0
    live: bool = True
    duplicates: DuplicateFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryStatistics(Listing[MemoryFigures]):
    """What is remembered at the end of each day, and now."""

    rows_key: ClassVar[str] = "items"
    results: tuple[MemoryFigures, ...] = ()
    since: date
    until: date
    now: MemoryFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult(Answer):
    """What an evaluation measured, on what, how, and with which release of the service."""

    evaluation_id: str
    name: str = ""
    dataset: str = ""
    release: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    """Of data set and settings: results with the same one were measured in the same way."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    actor: str | None = None
    create_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.evaluation_id}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EvaluationResults(Listing[EvaluationResult]):
    """Kept evaluations, newest first."""

    results: tuple[EvaluationResult, ...] = ()
