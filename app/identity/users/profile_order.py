"""The order to derive a profile; any room may place it, `profiles` carries it out. Pure."""

from datetime import timedelta
from typing import Final, Literal

from app.platform.jobs.orders import Order

PROFILE: Final = "profile"

Owner = tuple[Literal["user", "project"], str]
"""Whose profile: a user's, or a project's; and the id."""

DELAY: Final = timedelta(seconds=20)
"""What changes within it is derived from together, and each change begins it anew."""

LONGEST: Final = timedelta(minutes=2)
PRIORITY: Final = 10
"""Behind whatever else the tenant has to do: no conversation waits for a profile."""


def derive_soon(owner: Owner, *, creator: str | None) -> Order:
    """Behind a change of memories; one live job per profile."""
    return _order(owner, creator, DELAY)


def derive_now(owner: Owner, *, creator: str | None) -> Order:
    """Because somebody asks; it joins what is owed already."""
    return _order(owner, creator, timedelta(0))


def owner_of(key: str) -> Owner:
    """Whose profile a job of this key derives."""
    kind, _, one = key.partition(":")
    return ("user" if kind == "user" else "project"), one


def _order(owner: Owner, creator: str | None, delay: timedelta) -> Order:
    kind, one = owner
    return Order(
        kind=PROFILE,
        key=f"{kind}:{one}",
        user_id=one if kind == "user" else None,
        creator=creator,
        delay=delay,
        longest=LONGEST,
        priority=PRIORITY,
    )
