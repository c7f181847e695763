"""What is ordered of the queue, what became of an order, and what a worker is handed."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

CHANNEL = "kemem_jobs"
"""Workers listen here for work that is due at once."""


@dataclass(frozen=True, slots=True)
class Order:
    """Work to be done once, some time from now.

    Args:
        kind: which handler does it.
        key: what it is about; `(kind, key)` is live at most once in a tenant, and a second
            order joins the first.
        signals: flags for the handler; those of joined orders are united.
        payload: what else the handler needs; keys of a later order win.
        delay: how long to wait for more of the same. An order that joins a waiting one starts
            the wait again. Zero is urgent: due at once, and not pushed back any more.
        longest: the longest that joining orders may hold the first one back.
        priority: smaller goes first within the tenant; the smaller of joined orders counts.
        postpone_only: only join; no work is owed when none is live.
        max_attempts: how often it is tried before it is dead.

    """

    kind: str
    key: str
    agent_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    creator: str | None = None
    signals: frozenset[str] = frozenset()
    payload: Mapping[str, Any] = field(default_factory=dict)
    delay: timedelta = timedelta(0)
    longest: timedelta | None = None
    priority: int = 0
    postpone_only: bool = False
    max_attempts: int = 8


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The live job that an order made or joined.

    Args:
        status: `pending`, or `running` when it runs again after the present run.
        due_at: when that (next) run is due.
        merged: whether there was a live job already.

    """

    job_id: str
    status: str
    due_at: datetime
    merged: bool


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that this worker may work on as long as `lease_token` is the row's."""

    tenant_id: str
    job_id: str
    kind: str
    key: str
    agent_id: str | None
    user_id: str | None
    session_id: str | None
    creator: str | None
    signals: frozenset[str]
    payload: Mapping[str, Any]
    attempts: int
    max_attempts: int
    generation: int
    lease_token: str
    due_at: datetime
    waiting_since: datetime
    create_time: datetime
    started_at: datetime


Handler = Callable[[ClaimedJob], Awaitable[dict[str, Any] | None]]
"""Does the work of one kind. Either finishes the job itself, with `JobRepository.finish` in
the transaction of its results, and returns None; or returns what to keep as the result."""
