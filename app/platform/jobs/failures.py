"""Errors of jobs, and the verdict on a job whose handler raised: retry, defer, cancel or dead.
Pure.

Handlers raise the first three errors for their worker; they never reach a client.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from app.errors import (
    ConflictError,
    DomainError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)


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


FIRST_WAIT = timedelta(seconds=5)
LONGEST_WAIT = timedelta(minutes=10)
LONGEST_ASKED = timedelta(days=1)
"""Longest wait that a provider may ask for; a longer one would look like a lost job."""

JITTER = 0.2
LONGEST_JITTER = timedelta(minutes=1)
"""Longest time that is added to what a provider asks for."""

RETRY = "retry"
"""Reason of a job that waits after a failure."""

QUOTA_WAITS = {
    "rate_limited": timedelta(minutes=1),
    "quota_exhausted": timedelta(minutes=15),
}
"""Reasons that are no failure of the job, and how long to wait when the provider does not say."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a job whose handler raised.

    Args:
        outcome: `retry` counts the attempt, `defer` and `given_back` do not.
        wait: how long from now; or `until`, a time. Both None when the job has ended.
        reason: why it waits.

    """

    outcome: Literal["retry", "defer", "dead", "cancelled", "given_back"]
    code: str | None
    detail: str | None
    wait: timedelta | None = None
    until: datetime | None = None
    reason: str | None = None

    @property
    def counts(self) -> bool:
        """Whether the attempt counts."""
        return self.outcome not in {"defer", "given_back"}

    @property
    def status(self) -> str:
        """The status the row gets."""
        return self.outcome if self.outcome in {"dead", "cancelled"} else "pending"


LEASE_EXPIRED = Verdict(
    "dead", "lease_expired", "Its workers stopped without a word, as often as it may be tried."
)

GIVEN_BACK = Verdict("given_back", None, None)
"""Its worker is being stopped: pending again, due at once."""


def judge(error: BaseException, *, attempts: int, max_attempts: int, spread: float) -> Verdict:
    """The verdict on `error` after so many attempts.

    Args:
        attempts: how many were begun, this one included.
        spread: 0 to 1, shortens a wait by up to a fifth, so that jobs that failed together are not
            retried together; one that the provider asked for becomes longer instead.

    """
    match error:
        case DeferJobError():
            return Verdict("defer", None, None, until=error.until, reason=error.reason)
        case GiveUpJobError():
            return Verdict("dead", error.code, error.detail)
        case UnavailableError() | TooManyRequestsError():
            reason = _quota_reason(error)
            if reason is not None:
                wait = _asked(error, spread) or _spread(QUOTA_WAITS[reason], spread)
                return Verdict("defer", error.code, error.detail, wait=wait, reason=reason)
            code, detail = error.code, error.detail
        case DomainError():
            over: Literal["cancelled", "dead"] = (
                "cancelled" if isinstance(error, NotFoundError) else "dead"
            )
            return Verdict(over, error.code, error.detail)
        case TimeoutError():
            code, detail = "timed_out", "It took longer than a job may take."
        case _:
            # The message of an unknown error may hold content.
            code = "unexpected_error"
            detail = f"An error that nobody expected: {type(error).__name__}."
    # What waits for a provider is not at fault, and goes on until that is back.
    passing = isinstance(error, UnavailableError) and error.is_passing
    if attempts >= max_attempts and not passing:
        return Verdict("dead", code, detail)
    wait = _asked(error, spread) or back_off(attempts, spread)
    outcome: Literal["retry", "defer"] = "retry" if attempts < max_attempts else "defer"
    return Verdict(outcome, code, detail, wait=wait, reason=RETRY)


def back_off(attempts: int, spread: float) -> timedelta:
    """The wait after so many attempts: 5 s, then doubled each time, 10 minutes at most."""
    doubled = FIRST_WAIT * 2 ** min(max(attempts - 1, 0), 16)
    return _spread(min(doubled, LONGEST_WAIT), spread)


def _spread(wait: timedelta, spread: float) -> timedelta:
    return wait * (1 - JITTER * spread)


def _quota_reason(error: DomainError) -> str | None:
    for reason in (getattr(error, "reason", None), error.members.get("reason"), error.code):
        if isinstance(reason, str) and reason in QUOTA_WAITS:
            return reason
    return None


def _asked(error: BaseException, spread: float) -> timedelta | None:
    """How long the provider asked to wait, and never less; None when it did not."""
    asked = getattr(error, "retry_after", None)
    if asked is None and isinstance(error, DomainError):
        asked = error.members.get("retry_after")
    if isinstance(asked, int | float) and asked > 0:
        asked = timedelta(seconds=min(asked, LONGEST_ASKED.total_seconds()))
    if isinstance(asked, timedelta) and asked > timedelta(0):
        asked = min(asked, LONGEST_ASKED)
        return asked + spread * min(asked * JITTER, LONGEST_JITTER)
    return None
