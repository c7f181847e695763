"""Statistics as they cross HTTP."""

from datetime import date
from typing import Literal

from pydantic import Field

from app.identity.usage.schemas import DaysQuery
from app.platform.values.fields import OwnId, ReadSchema

GroupBy = Literal["day", "agent"]

_ESTIMATE = "An estimate, read from a histogram; null where nothing was timed."


class MemoryStatisticsQuery(DaysQuery):
    agent_id: OwnId | None = Field(default=None, description="Of this agent alone.")


class StatisticsQuery(MemoryStatisticsQuery):
    group_by: GroupBy = Field(
        default="day",
        description="`agent`: one item per agent over all the days, at most 100 of them, those "
        "with the most first.",
    )


class Grouped(ReadSchema):
    day: date | None = Field(description="Null when grouped by agent.")
    agent_id: str | None = Field(
        description="Null when grouped by day; empty for what belongs to no agent."
    )


class Days(ReadSchema):
    since: date
    until: date


class SearchFigures(ReadSchema):
    count: int
    queries: int = Field(description="Those with a query; a context may have none.")
    hits: int = Field(
        description="Of these, those that found a memory that reaches the request's `threshold`, "
        "or 0.5 where it names none, by its similarity or its lexical score."
    )
    hit_rate: float | None = Field(description="`hits` of `queries`.")
    p50_ms: float | None = Field(description=_ESTIMATE)
    p95_ms: float | None = Field(description=_ESTIMATE)


class ItemFigures(ReadSchema):
    """Memories in contexts. One that was shown in a session counts once, however often it was."""

    injected: int = Field(description="Shown for the first time in their session.")
    used: int = Field(description="Of which an agent said first that an answer drew on them.")
    used_estimated: int = Field(
        description="Of which most words came back in the answer that followed: an estimate."
    )
    use_rate: float | None = Field(description="`used` of `injected`, 1 at most.")
    use_rate_estimated: float | None = Field(
        description="`used_estimated` of `injected`, 1 at most: an estimate."
    )


class EffectFigures(ReadSchema):
    searches: SearchFigures
    contexts: SearchFigures
    items: ItemFigures


class EffectItem(Grouped, EffectFigures):
    pass


class EffectAnswer(Days):
    items: list[EffectItem] = Field(description="Without the days on which there was nothing.")
    totals: EffectFigures


class RefusalFigures(ReadSchema):
    accepted: int
    rejected: int
    by_code: dict[str, int] = Field(
        description="Refusals by the rule that was broken; one may break several."
    )


class RefusalItem(Grouped, RefusalFigures):
    pass


class RefusalAnswer(Days):
    items: list[RefusalItem] = Field(description="Without the days on which there was nothing.")
    totals: RefusalFigures


class ExtractionFigures(ReadSchema):
    runs: int
    failed: int
    messages: int = Field(description="That were read.")
    proposals: int = Field(description="Statements that were proposed.")
    lag_p50_ms: float | None = Field(
        description="From storing the first message that a run read to the end of the run. "
        + _ESTIMATE
    )
    lag_p95_ms: float | None
    duration_p50_ms: float | None = Field(
        description="From asking whatever reads to the end of the run. " + _ESTIMATE
    )
    duration_p95_ms: float | None


class ExtractionItem(Grouped, ExtractionFigures):
    pass


class ExtractionAnswer(Days):
    items: list[ExtractionItem] = Field(description="Without the days on which there was nothing.")
    totals: ExtractionFigures


class DuplicateFigures(ReadSchema):
    """An estimate by a sample: the newest memories, each compared with the nearest of its owner."""

    day: date
    sampled: int
    found: int = Field(description="Of the sample, those that say the same as another.")


class MemoryFigures(ReadSchema):
    day: date
    total: int = Field(description="Active ones.")
    by_status: dict[str, int]
    by_memory_type: dict[str, int] = Field(description="Active ones.")
    never_used: int = Field(
        description="Active ones that no search has found, and no agent said to have used."
    )
    in_conflict: int = Field(description="Active ones that contradict another, not yet resolved.")


class MemoryFiguresNow(MemoryFigures):
    live: bool = Field(
        description="Counted for this request; false for tenants with more than 50,000 memories, "
        "of which the last daily count is shown."
    )
    duplicates: DuplicateFigures | None = Field(
        description="Of the whole tenant, counted once a day; null before the first time."
    )


class MemoryStatisticsAnswer(Days):
    now: MemoryFiguresNow | None = Field(
        description="Null for tenants with more than 50,000 memories before their first count, "
        "which hourly maintenance makes."
    )
    items: list[MemoryFigures] = Field(
        description="The last count of each day, made hourly, or once a day with more than 50,000 "
        "memories; no item where there is none."
    )
