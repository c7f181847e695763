"""Today in UTC, on which a test begins and ends."""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Final

LONGEST_TEST: Final = timedelta(minutes=2)


def utc_today() -> date:
    return datetime.now(UTC).date()


def before_the_next_day(now: datetime) -> timedelta:
    """How long a test has to wait lest a midnight come while it runs; mostly not at all."""
    midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
    return midnight - now if midnight - now < LONGEST_TEST else timedelta(0)


def wait_until_no_midnight_is_near() -> None:
    while wait := before_the_next_day(datetime.now(UTC)):
        time.sleep(wait.total_seconds())
