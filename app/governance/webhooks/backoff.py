"""When a failed delivery is retried, and when a webhook is disabled."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

DELAYS = (
    timedelta(seconds=10),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=6),
    timedelta(hours=12),
    timedelta(hours=24),
)
MOST_ATTEMPTS = len(DELAYS) + 1
JITTER = 0.1
"""Delays vary by a tenth, so that attempts that failed together are not repeated together."""

LONGEST_WAIT = timedelta(hours=24)
"""What a receiver may ask for in `Retry-After`."""

FAILURES_BEFORE_PAUSE = 3
LONGEST_PAUSE = timedelta(minutes=5)

GIVE_UP_AFTER = timedelta(days=3)
LULL = timedelta(hours=36)
"""Longer than any delay: failures further apart than this are not one long failure."""


def next_attempt(
    attempts: int, *, at: datetime, retry_after: timedelta | None, chance: float
) -> datetime | None:
    """When to try again after `attempts` failed, or None when that was the last.

    Args:
        chance: a random number from 0 to 1.

    """
    if attempts >= MOST_ATTEMPTS:
        return None
    delay = DELAYS[attempts - 1] * (1 + JITTER * (2 * chance - 1))
    return at + max(delay, retry_after or timedelta(0))


def pause_after(failures: int, retry_after: timedelta | None) -> timedelta | None:
    """How long to pause a receiver after `failures` in a row; None for no pause.

    A pause needs several failures, since one bad event must not delay the others; without a
    pause a receiver that is down would cost a timeout for each pending event.
    """
    if retry_after:
        return retry_after
    if failures < FAILURES_BEFORE_PAUSE:
        return None
    doublings = min(failures - FAILURES_BEFORE_PAUSE, 5)
    return min(DELAYS[0] * (1 << doublings), LONGEST_PAUSE)


def read_retry_after(value: str, *, at: datetime) -> timedelta | None:
    """What a `Retry-After` header asks for, within bounds; None when it is unreadable."""
    try:
        if value.strip().isdecimal():
            # More digits than a day has seconds say no more than "long".
            asked = timedelta(seconds=int(value.strip()[:6]))
        else:
            retry_at = parsedate_to_datetime(value)
            asked = (retry_at if retry_at.tzinfo else retry_at.replace(tzinfo=UTC)) - at
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(asked, timedelta(0)), LONGEST_WAIT)
