"""How long ago something was, in words for a person or a model."""

from datetime import timedelta
from typing import Final

_UNITS: Final = (
    ("year", timedelta(days=365.25)),
    ("month", timedelta(days=30.4375)),
    ("week", timedelta(weeks=1)),
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
)


def time_ago(elapsed: timedelta) -> str:
    """`3 days ago`, in the largest unit that was full; `in 3 days` for what is to come.

    Within a minute it is `just now`.
    """
    length = abs(elapsed)
    for name, unit in _UNITS:
        count = length // unit
        if count:
            span = f"{count} {name}{'s' if count > 1 else ''}"
            return f"{span} ago" if elapsed > timedelta(0) else f"in {span}"
    return "just now"
