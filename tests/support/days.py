"""Today in UTC, on which a test begins and ends."""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Final

LONGEST_TEST: Final = timedelta(minutes=2)
LONGEST_UNIT_TEST: Final = timedelta(seconds=30)


def utc_today() -> date:
    return datetime.now(UTC).date()


def before_the_next_day(now: datetime, longest: timedelta) -> timedelta:
    """How long a test that may take so long has to wait lest a midnight come while it runs."""
    midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
    return midnight - now if midnight - now < longest else timedelta(0)


def wait_until_no_midnight_is_near(longest: timedelta = LONGEST_TEST) -> None:
    while wait := before_the_next_day(datetime.now(UTC), longest):
        time.sleep(wait.total_seconds())
