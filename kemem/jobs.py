"""Background jobs, waiting for them, and the use of models."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar, Protocol

from kemem.answers import Answer, Listing
from kemem.documents import FolderFile
from kemem.errors import JobFailedError, TimedOutError

WAIT_SECONDS = 300.0
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
FILE_PAUSE_SECONDS = 0.25

Progress = Callable[[FolderFile], object]
"""Called with the file whenever it has progressed: `passage_count` of `passages_expected`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Answer):
    """A background job: its status, and its result or error.

    `status` is pending, running, succeeded, dead (failed for good) or cancelled. `add` returns it
    with id, status and due time only.
    """

    job_id: str
    status: str
    kind: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    signals: tuple[str, ...] = ()
    creator: str | None = None
    due_at: datetime | None = None
    waiting_since: datetime | None = None
    deferred_reason: str | None = None
    run_again: bool = False
    attempts: int = 0
    max_attempts: int = 0
    error_code: str | None = None
    error_detail: str | None = None
    result: Mapping[str, Any] | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    create_time: datetime | None = None
    update_time: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended: succeeded, dead or cancelled."""
        return self.status in {"succeeded", "dead", "cancelled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Answer):
    """Number of model calls and their tokens."""

    calls: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """In the currency of the service's prices; None if a model has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageOfDay(Figures):
    """Figures for one day, operation and model."""

    day: date
    operation: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance(Answer):
    """One daily limit; `limit` and `remaining` are None if there is none."""

    limit: int | None = None
    used: int = 0
    remaining: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Today(Answer):
    """The use of today (UTC) and its quota."""

    day: date
    calls: Allowance = field(default_factory=Allowance)
    tokens: Allowance = field(default_factory=Allowance)
    exhausted: str | None = None
    resets_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice(Answer):
    """Money for a million tokens read and written."""

    input: float = 0.0
    output: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedModel(Answer):
    """A model of the service; `price` is None if nobody has told it one."""

    model: str
    price: ModelPrice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedModels(Answer):
    """Models that are asked, by their work; None where the service asks none."""

    extraction: UsedModel | None = None
    reconciliation: UsedModel | None = None
    profile: UsedModel | None = None
    summary: UsedModel | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Usage(Listing[UsageOfDay]):
    """Use of models by day, newest first, with totals and what is left of today's quota."""

    rows_key: ClassVar[str] = "items"
    results: tuple[UsageOfDay, ...] = ()
    since: date
    until: date
    totals: Figures = field(default_factory=Figures)
    today: Today
    models: UsedModels = field(default_factory=UsedModels)


class HasJob(Protocol):
    """An answer that may have started a job."""

    @property
    def job_id(self) -> str | None: ...


class JobWait:
    """A wait for one job: how long to pause and when it is over. It never sleeps itself."""

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
        self._pause = FIRST_PAUSE_SECONDS

    def pause(self, job: Job) -> float | None:
        """Seconds until the next request for the job; None if it has succeeded.

        Raises:
            JobFailedError: it is dead or was cancelled.
            TimedOutError: the time is over; the job continues.

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
        pause, self._pause = self._pause, min(self._pause * 1.5, LONGEST_PAUSE_SECONDS)
        return min(pause, left)


class FileWait:
    """A wait for the ingestion of one file. It never sleeps itself."""

    def __init__(
        self,
        timeout: float,
        progress: Progress | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout = timeout
        self._clock = clock
        self._end = clock() + timeout
        self._progress = progress
        self._reported: tuple[str, int] | None = None

    def pause(self, file: FolderFile) -> float | None:
        """Seconds until the next request for the file; None if it has been ingested.

        Raises:
            JobFailedError: it cannot be ingested; the code says why.
            TimedOutError: the time is over; the job continues.

        """
        if self._reported != (file.state, file.passage_count):
            self._reported = (file.state, file.passage_count)
            if self._progress is not None:
                self._progress(file)
        if file.state == "error":
            raise JobFailedError(file.job_id or "", "dead", file.error_code, file.error_detail)
        if file.is_over:
            return None
        if self._clock() > self._end:
            raise TimedOutError(
                f"The file {file.file_id} is {file.state} after {self._timeout:g} s. It goes on."
            )
        return FILE_PAUSE_SECONDS
