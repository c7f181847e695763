"""When a delivery that failed is tried again, and when a webhook is given up."""

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
"""Delays vary by a tenth, so that what failed together does not come back together."""

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
    """How long to leave a receiver alone that failed `failures` times in a row, if at all.

    One bad event must not hold up those behind it, so a pause needs several; but a receiver
    that is down would otherwise cost a timeout for each event that waits.
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
            moment = parsedate_to_datetime(value)
            asked = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - at
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(asked, timedelta(0)), LONGEST_WAIT)
