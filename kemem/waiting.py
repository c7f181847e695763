"""Waiting for a job: how often to look, and when it is over. Never sleeps itself."""

import time
from collections.abc import Callable
from typing import Protocol

from kemem.conversations import Job
from kemem.errors import JobFailedError, TimedOutError

FIRST_LOOK_SECONDS = 0.1
LAST_LOOK_SECONDS = 2.0


class HasJob(Protocol):
    """What an answer that put work into the queue has."""

    @property
    def job_id(self) -> str | None: ...


class Watch:
    """One wait for one job."""

    def __init__(
        self,
        job: str | HasJob,
        timeout: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        job_id = job if isinstance(job, str) else job.job_id
        if job_id is None:
            raise ValueError("there is no job to wait for: nothing was scheduled")
        self.job_id = job_id
        self._timeout = timeout
        self._clock = clock
        self._end = clock() + timeout
        self._pause = FIRST_LOOK_SECONDS

    def pause(self, job: Job) -> float | None:
        """Seconds until the next look at a job that is `job` now; None when it succeeded.

        Raises:
            JobFailedError: it is dead or was cancelled.
            TimedOutError: the time is over; the job goes on.

        """
        if job.status == "succeeded":
            return None
        if job.is_over:
            raise JobFailedError(job.job_id, job.status, job.error_code, job.error_detail)
        left = self._end - self._clock()
        if left <= 0:
            why = f", {job.deferred_reason}" if job.deferred_reason else ""
            raise TimedOutError(
                f"The job {job.job_id} is {job.status} after {self._timeout:g} s{why}. It goes on."
            )
        pause, self._pause = self._pause, min(self._pause * 1.5, LAST_LOOK_SECONDS)
        return min(pause, left)
