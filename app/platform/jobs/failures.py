"""What an error means for the job that raised it: try again, wait, cancel, or give up. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from app.errors import DomainError, NotFoundError, TooManyRequestsError, UnavailableError
from app.platform.jobs.errors import DeferJobError, GiveUpJobError

FIRST_WAIT = timedelta(seconds=5)
LONGEST_WAIT = timedelta(minutes=10)
LONGEST_ASKED = timedelta(days=1)
"""A provider may ask for more patience than this; nobody would see the job move again."""

JITTER = 0.2

RETRY = "retry"
"""Reason of a job that waits after a failure."""

QUOTA_WAITS = {
    "rate_limited": timedelta(minutes=1),
    "quota_exhausted": timedelta(minutes=15),
}
"""Reasons that are no failure of the job, and how long to wait when nobody says."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a job whose handler raised.

    Args:
        outcome: `retry` counts the attempt, `defer` and `given_back` do not.
        wait: from now on; or `until`, a moment; both None when it is over.
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
        """Whether the attempt was one."""
        return self.outcome not in {"defer", "given_back"}

    @property
    def status(self) -> str:
        """The status the row gets."""
        return self.outcome if self.outcome in {"dead", "cancelled"} else "pending"


LEASE_EXPIRED = Verdict(
    "dead", "lease_expired", "Its workers stopped without a word, as often as it may be tried."
)

GIVEN_BACK = Verdict("given_back", None, None)
"""Its worker is being stopped: owed again at once."""


def judge(error: BaseException, *, attempts: int, max_attempts: int, spread: float) -> Verdict:
    """What to do about `error` after so many attempts.

    Args:
        attempts: how many were begun, this one included.
        spread: 0 to 1, shortens a wait by up to a fifth, so that what failed together does
            not come back together.

    """
    match error:
        case DeferJobError():
            return Verdict("defer", None, None, until=error.until, reason=error.reason)
        case GiveUpJobError():
            return Verdict("dead", error.code, error.detail)
        case UnavailableError() | TooManyRequestsError():
            reason = _quota_reason(error)
            if reason is not None:
                wait = _asked(error) or _spread(QUOTA_WAITS[reason], spread)
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
            # The words of an unknown error may be anybody's.
            code = "unexpected_error"
            detail = f"An error that nobody expected: {type(error).__name__}."
    if attempts >= max_attempts:
        return Verdict("dead", code, detail)
    wait = _asked(error) or back_off(attempts, spread)
    return Verdict("retry", code, detail, wait=wait, reason=RETRY)


def back_off(attempts: int, spread: float) -> timedelta:
    """The wait after so many attempts: 5 s, then doubled each time, 10 minutes at most."""
    doubled = FIRST_WAIT * 2 ** min(max(attempts - 1, 0), 16)
    return _spread(min(doubled, LONGEST_WAIT), spread)


def _spread(wait: timedelta, spread: float) -> timedelta:
    return wait * (1 - JITTER * spread)


def _quota_reason(error: DomainError) -> str | None:
    for said in (getattr(error, "reason", None), error.members.get("reason"), error.code):
        if isinstance(said, str) and said in QUOTA_WAITS:
            return said
    return None


def _asked(error: BaseException) -> timedelta | None:
    """How long the other side asked us to wait, in seconds or as a duration."""
    asked = getattr(error, "retry_after", None)
    if asked is None and isinstance(error, DomainError):
        asked = error.members.get("retry_after")
    if isinstance(asked, int | float) and asked > 0:
        asked = timedelta(seconds=min(asked, LONGEST_ASKED.total_seconds()))
    if isinstance(asked, timedelta) and asked > timedelta(0):
        return min(asked, LONGEST_ASKED)
    return None
