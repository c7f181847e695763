"""Steps through the calendar from the time of saying: days, weeks, months, years."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from dateutil.relativedelta import relativedelta

Grain = Literal["day", "week", "weekend", "month", "season", "year"]
Read = Callable[[re.Match[str], datetime, bool], datetime | None]
Reader = tuple[re.Pattern[str], Read, Callable[[re.Match[str]], Grain | None]]
"""A pattern, the first moment of what it names, and how exactly it names it: None when in full."""


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def day_of(said_at: datetime, year: int, month: int = 1, day: int = 1) -> datetime:
    return midnight(said_at).replace(year=year, month=month, day=day)


def months_later(moment: datetime, months: int) -> datetime:
    """The same day so many months later, or the last of a shorter month."""
    return moment + relativedelta(months=months)


def later(said_at: datetime, count: int, unit: str) -> datetime:
    day = midnight(said_at)
    if unit in {"day", "天", "日"}:
        return day + timedelta(days=count)
    if unit in {"week", "周", "星期", "礼拜"}:
        return day + timedelta(weeks=count)
    return months_later(day, count if unit in {"month", "月"} else 12 * count)


def monday(said_at: datetime) -> datetime:
    return midnight(said_at) - timedelta(days=said_at.weekday())


def month_near(said_at: datetime, month: int, day: int, past: bool) -> datetime:
    """The last such month that has begun, or the next that has not."""
    if past:
        year = said_at.year - (1 if (month, day) > (said_at.month, said_at.day) else 0)
    else:
        year = said_at.year + (1 if (month, day) < (said_at.month, said_at.day) else 0)
    return day_of(said_at, year, month, day)
