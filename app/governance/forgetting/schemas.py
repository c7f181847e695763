"""Forgetting as it crosses HTTP: ids, codes and counts, never what was said."""

from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import Field, model_validator

from app.identity.agents.config import Eviction
from app.platform.values.fields import OwnId, ReadSchema, Schema, Timestamp, example

Step = Literal[
    "expired", "source_deleted", "session_deleted", "superseded", "over_capacity", "decayed",
    "purged", "messages", "archived_checkpoints", "snapshots", "saver_checkpoints",
]  # fmt: skip

STEPS: Final[tuple[Step, ...]] = get_args(Step)
"""In the order of a run: what is archived in one run is deleted in a later one."""


class ForgettingRunCreate(Schema):
    model_config = example(dry_run=True, steps=["over_capacity"], eviction="hybrid")

    dry_run: bool = Field(
        default=True,
        description="Only show what would be forgotten. False orders the job, due at once.",
    )
    steps: Annotated[list[Step], Field(min_length=1)] | None = Field(
        default=None, description="All when left out."
    )
    agent_id: OwnId | None = Field(default=None, description="Only rows of this agent.")
    eviction: Eviction | None = Field(
        default=None,
        description="With `dry_run`: compares what this eviction would archive beyond the cap with "
        "what the policy in force archives.",
    )

    @model_validator(mode="after")
    def _compares_only(self) -> Self:
        if self.eviction is not None and not self.dry_run:
            raise ValueError("eviction is for dry runs; set it in the agent's config to act by it")
        return self


class Candidate(ReadSchema):
    id: str = Field(description="Of a memory, a message, a checkpoint, a snapshot or a session.")
    reason: str = Field(examples=["over_capacity"])


class StepRead(ReadSchema):
    step: Step
    due: int = Field(description="How many would be forgotten now.")
    sample: list[Candidate] = Field(description="The first of them.")


class Shadow(ReadSchema):
    """What another eviction would archive, compared with the policy in force."""

    eviction: Eviction
    buckets: int = Field(description="Buckets beyond their cap that were compared.")
    both: int = Field(description="Memories that both would archive.")
    only_policy: list[str] = Field(description="Ids that only the policy in force would archive.")
    only_shadow: list[str] = Field(description="Ids that only `eviction` would archive.")
    truncated: bool = Field(
        description="Whether the comparison is incomplete: buckets that hold more than 50,000 "
        "memories together are not all compared, and at most 200 ids of each way are shown."
    )


class ForgettingRunRead(ReadSchema):
    dry_run: bool
    job_id: str | None = Field(default=None, description="Of the job that does it.")
    steps: list[StepRead] = []
    shadow: Shadow | None = None


class PolicyRead(ReadSchema):
    enabled: bool
    max_facts: int
    eviction: Eviction
    decay_below: float
    source_deleted_days: int
    with_session: bool
    superseded_days: int
    message_retention_days: int
    checkpoint_retention_days: int


class LastRun(ReadSchema):
    job_id: str
    status: str
    result: dict[str, Any] | None = Field(description="Rows forgotten, by step.")
    error_code: str | None
    due_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None


class ForgettingRead(ReadSchema):
    policy: PolicyRead = Field(description="For rows of no agent, or of an agent without a policy.")
    agents: dict[str, PolicyRead] = Field(description="Of agents with a policy of their own.")
    purge_days: int = Field(description="How long what was archived here, or deleted, is kept.")
    last_runs: list[LastRun] = Field(description="Newest first.")
