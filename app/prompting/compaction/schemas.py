"""Compactions and summaries as they cross HTTP, and what can go wrong with these."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from app.conversation.messages.schemas import PressureRead, WindowStrategy
from app.errors import NotFoundError
from app.platform.values.fields import ReadSchema, Schema, Storable, Timestamp, example
from app.platform.values.pagination import ContentQuery

WhyNot = Literal[
    "dry_run",
    "below_trigger",
    "empty",
    "fits",
    "current_turn",
    "open_call",
    "not_shorter",
    "already_compacted",
    "changed",
]
"""Why nothing was compacted. `current_turn`: the window has nothing but the current request and its
newest step, or a current turn that is not over the trigger."""

Reason = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,19}$")]


class CompactRequest(Schema):
    model_config = example(force=True)

    force: bool = Field(
        default=False,
        description="Also when the window is not full yet; else nothing is done.",
    )
    dry_run: bool = Field(
        default=False, description="Only say what would leave the window; nothing is written."
    )
    keep_messages: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="Instead of the policy's, for this once."
    )
    strategy: WindowStrategy | None = Field(
        default=None,
        description="Which of the newest stay, instead of `keep_messages`: those behind the last "
        "one that it leaves out.",
    )
    evict_fraction: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="Share of the budget to make free, instead of the policy's."
    )
    instructions: (
        Annotated[str, StringConstraints(min_length=1, max_length=2000), Storable] | None
    ) = Field(default=None, description="Your instructions to a model that writes the summary.")
    reason: Reason = Field(default="manual", description="Kept with the summary.")

    @model_validator(mode="after")
    def _by_count_or_strategy(self) -> Self:
        if self.strategy is not None and self.keep_messages is not None:
            raise ValueError("give strategy or keep_messages, not both")
        return self


class SummaryRead(ReadSchema):
    summary_id: str
    session_id: str
    level: int = Field(
        description="0 covers messages; four of a level are merged into one of the next."
    )
    parent_id: str | None = Field(description="The summary that was read before it was written.")
    from_seq: int
    to_seq: int
    content: str
    tokens: int
    evicted_messages: int = Field(description="How many messages it covers.")
    evicted_tokens: int
    model: str = Field(description="Who wrote it: `extractive/1`, or `openai/<model>`.")
    shortened: bool = Field(description="It was too long, and was cut at the end of a sentence.")
    reason: str
    creator: str | None = Field(description="Id of the key that asked for it.")
    create_time: Timestamp
    in_context: bool = Field(
        default=False,
        description="Whether it is in the context now; otherwise a later summary covers it.",
    )


class SummaryQuery(ContentQuery):
    level: Annotated[int, Field(ge=0, le=100)] | None = None


class EvictedRead(ReadSchema):
    """What leaves the window, and stays stored."""

    messages: int
    tokens: int
    from_seq: int
    to_seq: int


class CompactAnswer(ReadSchema):
    """What a compaction did, or why it did nothing."""

    session_id: str
    compacted: bool
    why_not: WhyNot | None = Field(description="Null when it did something.")
    evicted: EvictedRead | None = Field(description="With `dry_run`, what would leave.")
    more: bool = Field(description="Whether more has to leave, which takes another compaction.")
    summary: SummaryRead | None
    folded: list[SummaryRead] = Field(description="Summaries of summaries that came with it.")
    model: str | None = Field(description="Who wrote the summary, or would.")
    rescue_job_id: str | None = Field(
        description="The job that reads what left for memories; null where memory is off, or all "
        "of it was read before."
    )
    snapshot_id: str | None = Field(description="Of the working state as it was.")
    checkpoint_id: str | None = Field(description="Of the session as it was.")
    pressure_before: PressureRead
    pressure_after: PressureRead | None


class SummaryNotFoundError(NotFoundError):
    code = "summary_not_found"
    title = "Summary not found"

    def __init__(self, summary_id: str) -> None:
        super().__init__(f"There is no summary {summary_id}.")
