"""Errors of jobs.

Handlers raise the first three for their worker; they never reach a client.
"""

from datetime import datetime

from app.errors import ConflictError, NotFoundError


class LeaseLostError(Exception):
    """Another worker has the job, or it was cancelled or deleted: nothing may be written.

    Raised inside the handler's transaction, so that everything in it is rolled back.
    """


class DeferJobError(Exception):
    """The job has to wait, which is no failure: the attempt does not count.

    Args:
        until: when to try again.
        reason: a code such as `rate_limited`, shown with the job.

    """

    def __init__(self, until: datetime, reason: str) -> None:
        super().__init__(reason)
        self.until = until
        self.reason = reason


class GiveUpJobError(Exception):
    """No further attempt can succeed: the job is dead at once.

    Args:
        code: stable, snake_case.
        detail: a fixed sentence, without content of a user or a provider.

    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


class JobNotFoundError(NotFoundError):
    code = "job_not_found"
    title = "Job not found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"There is no job {job_id}.")


class JobNotCancellableError(ConflictError):
    code = "job_not_cancellable"
    title = "Job is over"

    def __init__(self, status: str) -> None:
        super().__init__(
            f"The job is {status}; only pending and running jobs can be cancelled.",
            current_status=status,
        )


class JobNotRetryableError(ConflictError):
    code = "job_not_retryable"
    title = "Job cannot be retried"

    def __init__(self, status: str, detail: str | None = None) -> None:
        super().__init__(
            detail or f"The job is {status}; only dead and cancelled jobs can be retried.",
            current_status=status,
        )


class JobAlreadyLiveError(ConflictError):
    code = "job_already_live"
    title = "The work is owed already"

    def __init__(self, job_id: str | None) -> None:
        """`job_id` is None when the other job was ordered at the same time."""
        super().__init__(
            f"{'Another job' if job_id is None else f'The job {job_id}'} is owed or running for "
            "the same thing; it does this one's work.",
            **({} if job_id is None else {"live_job_id": job_id}),
        )
