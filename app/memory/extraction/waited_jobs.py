"""What to tell whoever waits for the reading of a session, by the state of its job. Pure.

The request brought the job forward, so whatever the job waits for came later.
"""

import math
from datetime import datetime

from app.errors import DomainError
from app.memory.extraction.errors import kept_failure
from app.platform.jobs.models import LANE_BUSY, Job


def is_deferred_beyond(job: Job, until: datetime) -> bool:
    """Whether the job waits for longer; one behind others of its user runs when they end."""
    return _is_deferred(job) and job.due_at > until


def failure_of(job: Job, now: datetime, soon: datetime | None) -> DomainError | None:
    """Why the last run of the job failed; None when there was none since the request.

    Its `Retry-After` is the time until the job is tried again.

    Args:
        soon: jobs that are due again by then are waited for.

    """
    deferred = _is_deferred(job)
    if deferred and soon is not None and job.due_at <= soon:
        return None
    failure = kept_failure(job.payload) if deferred or job.status == "dead" else None
    if failure is None or failure.code != job.error_code:
        return None
    if deferred:
        failure.headers = retry_after(job, now)
    return failure


def retry_after(job: Job, now: datetime) -> dict[str, str]:
    """The header that says when the job is tried again, where that is known."""
    if not _is_deferred(job):
        return {}
    return {"Retry-After": str(max(math.ceil((job.due_at - now).total_seconds()), 1))}


def _is_deferred(job: Job) -> bool:
    return job.status == "pending" and job.deferred_reason not in {None, LANE_BUSY}
