"""Jobs as they cross HTTP; never the content they work on."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from app.platform.values.fields import OwnId, ReadSchema, Storable, Timestamp
from app.platform.values.pagination import PageQuery

JobStatus = Literal["pending", "running", "succeeded", "dead", "cancelled"]
JobKind = Annotated[str, StringConstraints(min_length=1, max_length=40), Storable]


class JobQuery(PageQuery):
    kind: JobKind | None = Field(default=None, examples=["extract"])
    status: JobStatus | None = None
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    session_id: OwnId | None = None


class JobRead(ReadSchema):
    job_id: str
    kind: str
    status: JobStatus
    agent_id: str | None
    user_id: str | None
    session_id: str | None
    signals: list[str] = Field(description="What was noticed in the messages of the job.")
    creator: str | None = Field(description="Id of the key that asked for it.")
    due_at: Timestamp
    waiting_since: Timestamp
    deferred_reason: str | None = Field(
        description="Why it waits, when that is no debounce: after a failure, for a quota, or with "
        "`lane_busy` for other readings of the same user."
    )
    run_again: bool = Field(description="Whether it was ordered again while it runs.")
    attempts: int
    max_attempts: int
    error_code: str | None
    error_detail: str | None
    result: dict[str, Any] | None = Field(description="Ids, counts and codes.")
    started_at: Timestamp | None
    finished_at: Timestamp | None
    create_time: Timestamp
    update_time: Timestamp


class JobStats(ReadSchema):
    total: int
    by_status: dict[JobStatus, int]
    by_kind: dict[str, dict[JobStatus, int]]
    due: int = Field(description="Jobs that could run now and wait for a worker.")
    oldest_due: Timestamp | None = Field(description="Since when the first of them has been due.")
    dead: int = Field(description="Jobs that failed for good and need attention.")
