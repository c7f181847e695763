"""The order to bring a graph in line with its memories; `graph` carries it out. Pure."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Final

from app.platform.jobs.orders import Order

GRAPH_TIDY: Final = "graph_tidy"

Bucket = tuple[str, str]
"""Scope and id of the scope: a user's, a project's or an agent's."""

DELAY: Final = timedelta(seconds=2)
"""What changes within it is looked at together."""

LONGEST: Final = timedelta(seconds=10)
PRIORITY: Final = 5
"""Behind conversations, before profiles."""

_REWORDED: Final = "reworded:"


def tidy_soon(
    bucket: Bucket, *, read: Collection[str], reworded: Collection[str], creator: str | None
) -> Order:
    """Behind a change of memories; one live job per bucket.

    Args:
        bucket: whose graph it is.
        read: ids of memories that no run has read for whom they speak of.
        reworded: those of them that said something else before.
        creator: the key that changed them.

    """
    scope, scope_id = bucket
    return Order(
        kind=GRAPH_TIDY,
        key=f"{scope}:{scope_id}",
        user_id=scope_id if scope == "user" else None,
        creator=creator,
        # Keys of their own, since payloads of joined orders are united key by key.
        payload=dict.fromkeys(read, True) | {f"{_REWORDED}{one}": True for one in reworded},
        delay=DELAY,
        longest=LONGEST,
        priority=PRIORITY,
    )


def bucket_of(key: str) -> Bucket:
    """Whose graph a job of this key looks at."""
    scope, _, scope_id = key.partition(":")
    return scope, scope_id


def to_read(payload: Mapping[str, Any]) -> list[str]:
    """Ids of memories that are to be read."""
    return sorted(one for one in payload if not one.startswith(_REWORDED))


def reworded(payload: Mapping[str, Any]) -> list[str]:
    """Ids of those that said something else before."""
    return sorted(one.removeprefix(_REWORDED) for one in payload if one.startswith(_REWORDED))
