"""Which buckets are large, and which searches of them rank candidates instead of every row.

Where most memories of a bucket have short codes, one index holds all that the choice of candidates
needs, and of the whole bucket nothing else is read (`candidates_sql.py`, `docs/decisions/0024`).
"""

from collections.abc import Callable
from time import monotonic
from typing import Final

import numpy as np

from app.memory.memories.bucket_sql import LARGE_BUCKETS
from app.memory.memories.comparison_sql import LEAST_DIMENSION, MINIMUM_DIMENSION
from app.memory.memories.search_sql import SearchPlan
from app.platform.database.joint_reads import HotReads

LARGE: Final = 1_500
"""From so many rows with codes on candidates are chosen (`docs/decisions/0024`)."""

MOST_VECTORS: Final = 4
"""Of the words of a query, six each; a longer one is a conversation and ranks every row."""

DEEPEST: Final = 200
"""A search for more hits ranks every row; a context asks for no more."""

DEEPEST_BY_VECTORS: Final = 11
"""As `DEEPEST`, of a search by vectors alone: of more hits short codes find too few, and no words
stand beside them."""

MOST_KNOWN: Final = 10_000
"""Of the large buckets of a tenant, the largest first; and of tenants."""

AGAIN: Final = 300.0
"""Seconds after which a process asks again which buckets of a tenant are large."""


class LargeBuckets:
    """Which buckets housekeeping has given codes, as this process last read it.

    What has changed since does no harm: either way of a search is right for any bucket.
    """

    def __init__(self, reads: HotReads, clock: Callable[[], float] = monotonic) -> None:
        self._reads = reads
        self._clock = clock
        self._known: dict[str, tuple[float, set[tuple[str, str]]]] = {}

    async def has(self, plan: SearchPlan) -> bool:
        """Whether one of the plan's buckets is large; now and then asks the database."""
        tenant_id = plan.access.tenant_id
        known = self._known.get(tenant_id)
        if known is None or known[0] <= self._clock():
            rows = await self._reads.fetch(tenant_id, LARGE_BUCKETS, LARGE, MOST_KNOWN)
            found = {(str(row["scope"]), str(row["scope_id"])) for row in rows}
            known = (self._clock() + AGAIN, found)
            self._known.pop(tenant_id, None)
            self._known[tenant_id] = known
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return any((bucket.scope, bucket.scope_id) in known[1] for bucket in plan.buckets)

    def forget(self, plan: SearchPlan) -> None:
        """Take the plan's buckets for small until the database is asked again."""
        known = self._known.get(plan.access.tenant_id)
        if known is not None:
            known[1].difference_update((each.scope, each.scope_id) for each in plan.buckets)


def may_choose(plan: SearchPlan) -> bool:
    """Whether candidates stand for all rows in this search.

    What filters leave over need not be near the query, nor what a threshold, a time or a graph
    asks for: such a search ranks every row.
    """
    asked = plan.asked
    plain = not (
        plan.filters or plan.run_id or plan.memory_type or plan.memory_types or plan.tier
        or plan.as_of or plan.known_at or plan.newest or plan.names
        or (asked is not None and asked.traits.dates)
    )  # fmt: skip
    return (
        plain
        and plan.threshold is None
        and plan.limit <= (DEEPEST_BY_VECTORS if plan.mode == "semantic" else DEEPEST)
        and (plan.mode == "semantic" or _has_words(plan))
        and (plan.mode == "lexical" or _has_vector(plan))
    )


def _has_words(plan: SearchPlan) -> bool:
    return plan.asked is not None and 1 <= len(plan.asked.packed.vectors) <= MOST_VECTORS


def _has_vector(plan: SearchPlan) -> bool:
    """Whether the query is compared by one vector that short codes stand for."""
    vectors = plan.vectors if plan.asked is None else plan.asked.vectors
    if len(vectors) != 1:
        return False
    [vector] = vectors.values()
    return LEAST_DIMENSION <= len(vector) < MINIMUM_DIMENSION and bool(np.any(vector))
