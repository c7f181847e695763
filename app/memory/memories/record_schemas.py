"""What is kept about memories, counted and deleted, as it crosses HTTP."""

from typing import Any, Literal

from pydantic import Field, JsonValue

from app.memory.memories.schemas import MemoryType, Reason, Scope, Source, Status, Visibility
from app.platform.values.fields import Description, Id, Kind, ReadSchema, Schema, Timestamp, example
from app.platform.values.pagination import PageQuery


class HistoryRead(ReadSchema):
    history_id: str
    memory_id: str
    event: Literal["ADD", "UPDATE", "SUPERSEDE", "MERGE", "ARCHIVE", "RESTORE", "DELETE"]
    reason: str | None
    actor: str | None = Field(description="Id of the key that did it.")
    job_id: str | None = Field(description="The job that did it, when it was one.")
    before: dict[str, Any] | None = Field(
        description="Null for what was `owner_only` then, unless it was yours; so is `after`."
    )
    after: dict[str, Any] | None
    version: int
    create_time: Timestamp


class DecisionRead(ReadSchema):
    decision_id: str
    verdict: Literal["accepted", "rejected"]
    codes: list[str]
    reasons: list[Reason]
    content: str | None = Field(description="Null when it was sensitive.")
    scope: Scope
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    project_id: str | None
    memory_id: str | None
    source: Source
    event: str | None = Field(description="What became of it, such as ADD or REJECT.")
    evidence: list[str] = Field(description="Ids of the messages that support it.")
    job_id: str | None
    run_id: str | None
    actor: str | None
    create_time: Timestamp


class DecisionQuery(PageQuery):
    user_id: Id | None = None
    verdict: Literal["accepted", "rejected"] | None = None
    code: Kind | None = None
    job_id: Id | None = None
    run_id: Id | None = None


class StatsQuery(Schema):
    user_id: Id | None = None
    agent_id: Id | None = None
    project_id: Id | None = None


class MemoryStats(ReadSchema):
    total: int = Field(description="Active memories.")
    by_status: dict[str, int]
    by_memory_type: dict[str, int] = Field(description="Active ones.")
    by_scope: dict[str, int] = Field(description="Active ones.")
    by_tier: dict[str, int] = Field(description="Active ones.")
    by_source: dict[str, int] = Field(description="Active ones.")
    by_embedding_model: dict[str, int] = Field(description="Active ones.")
    decisions: dict[str, int] = Field(description="Verdicts of the gate: accepted, and by code.")
    last_saved: Timestamp | None


class ProjectItemQuery(PageQuery):
    user_id: Id | None = Field(default=None, description="Only those of this author.")
    visibility: Visibility | None = None


class ProjectItemRead(ReadSchema):
    """What owners and admins see of every item, whatever its visibility: never what it says."""

    memory_id: str
    user_id: str | None = Field(description="The author.")
    visibility: Visibility
    status: Status
    create_time: Timestamp
    update_time: Timestamp


class MemoryDeleteQuery(Schema):
    hard: bool = Field(default=False, description="Purge at once instead of after some days.")


class BulkDeleteQuery(Schema):
    user_id: Id | None = None
    agent_id: Id | None = None
    session_id: Id | None = None
    project_id: Id | None = None
    scope: Scope | None = None
    memory_type: MemoryType | None = None
    hard: bool = False
    confirm: bool = Field(default=False, description="Required, unless it is a dry run.")
    dry_run: bool = Field(default=False, description="Only count.")


class BulkDelete(BulkDeleteQuery):
    model_config = example(user_id="ana", filters={"memory_type": "event"}, dry_run=True)

    filters: dict[str, JsonValue] | None = Field(
        default=None, description="As in a search.", examples=[{"memory_type": "event"}]
    )
    reason: Description | None = None


class MemoriesDeleted(ReadSchema):
    deleted: int = Field(description="Memories deleted, or that would be.")
    dry_run: bool


class DeletionScheduled(ReadSchema):
    """More than one transaction should hold: a job deletes them."""

    selected: int = Field(description="Memories that were selected.")
    job_id: str = Field(description="`GET /v1/jobs/{job_id}` says how far it is.")
