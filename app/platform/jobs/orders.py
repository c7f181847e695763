"""Orders of jobs, the jobs they made or joined, and jobs that a worker has claimed."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final

from app.platform.observability.spans import carried

CHANNEL = "kemem_jobs"
"""Channel on which workers are notified of jobs that are due at once."""

CHANGED = "changed"
"""Signal that something has changed or is gone; orders without it, of what is new, leave the time
at which such a job is due.
"""


@dataclass(frozen=True, slots=True)
class Order:
    """Work to be done once, now or later.

    Args:
        kind: which handler does it.
        key: the subject; `(kind, key)` is live at most once in a tenant, and a second
            order joins the first.
        signals: flags for the handler; those of joined orders are united.
        payload: further values for the handler; those of a later order replace earlier ones.
        delay: how long to wait for further orders. An order that joins a pending one starts
            the wait again. Zero is urgent: due at once, and no longer delayed by others.
        longest: the longest time by which joining orders may delay the first.
        priority: smaller runs first within the tenant; of joined orders the smallest counts.
        postpone_only: only join a live job; makes none.
        max_attempts: how often it is tried before it is dead.
        lane: of all jobs of a lane in the tenant one runs at a time.
        lane_order: of those that are due the one with the smallest is the next; of joined orders
            the smallest counts.

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
    lane: str | None = None
    lane_order: datetime | None = None

    def row(self, job_id: str) -> dict[str, Any]:
        """The job that it makes, for `ordering_sql.order_many`. Nobody may wait for it.

        Raises ValueError: it is urgent, or only joins a job.
        """
        if self.delay <= timedelta(0) or self.postpone_only:
            raise ValueError("an order that somebody waits for is sent alone")
        return {name: getattr(self, name) for name in _COLUMNS} | {
            "job_id": job_id,
            "signals": sorted(self.signals),
            "payload": {**self.payload, **carried()},
        }


_COLUMNS: Final = tuple(each.name for each in fields(Order) if each.name != "postpone_only")


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
    """A job that this worker may work on while the row has its `lease_token`."""

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
    lane: str | None = None
    traceparent: str | None = None
    """The trace in which it was ordered, if there is one."""


Handler = Callable[[ClaimedJob], Awaitable[dict[str, Any] | None]]
"""Runs jobs of one kind. It finishes the job itself, with `JobRepository.finish` in the transaction
of its results, and returns None; or it returns the result to store."""
