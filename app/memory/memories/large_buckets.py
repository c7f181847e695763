"""Which buckets are large, what this process knows of their rows, and which searches of them rank
candidates instead of every row.

Where most memories of a bucket have short codes, all that the choice of candidates needs of them is
kept in memory (`bucket_index.py`, `docs/decisions/0024`).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

import numpy as np

from app.language.text.offload import read_text
from app.memory.memories.bucket_index import BucketIndex
from app.memory.memories.bucket_sql import CODED_ROWS, REGISTERED_BUCKETS
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
"""Of the registered buckets of a tenant, the largest first; and of tenants."""

MOST_ROWS: Final = 500_000
"""Of all indexes that a process keeps, some 150 bytes each."""

AGAIN: Final = 300.0
"""Seconds after which a process asks again which buckets of a tenant are large, and reads an
index anew."""

Key = tuple[str, str, str]
"""Tenant, scope and id of a bucket."""


@dataclass(slots=True)
class _Known:
    """The registered buckets of a tenant: scope and id of each, and how many rows with codes."""

    until: float
    rows: dict[tuple[str, str], int]


class LargeBuckets:
    """Which buckets housekeeping has given codes, and their rows, as this process last read them.

    A bucket whose rows have changed since is noticed by its state (`candidates_sql.py`).
    """

    def __init__(
        self,
        reads: HotReads,
        clock: Callable[[], float] = monotonic,
        *,
        least: int = LARGE,
        most_rows: int = MOST_ROWS,
    ) -> None:
        """Take buckets of at least `least` rows for large, and keep so many rows at most."""
        self._reads = reads
        self._least = least
        self._most_rows = most_rows
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._indexes: dict[Key, tuple[float, BucketIndex]] = {}
        self._reading = asyncio.Lock()

    async def indexes(self, plan: SearchPlan) -> Sequence[BucketIndex]:
        """Of all rows with codes of the plan's buckets, if one of these is large; else none.

        Now and then asks the database; a bucket of more rows than a process keeps is not large.
        """
        known = await self._registered(plan.access.tenant_id)
        places = [(each.scope, each.scope_id) for each in plan.buckets]
        sizes = [known[place] for place in places if place in known]
        if not self._least <= max(sizes, default=0) <= sum(sizes) <= self._most_rows:
            return ()
        return [
            await self._index((plan.access.tenant_id, *place)) for place in places if place in known
        ]

    async def _registered(self, tenant_id: str) -> dict[tuple[str, str], int]:
        known = self._known.get(tenant_id)
        if known is None or known.until <= self._clock():
            found: dict[tuple[str, str], int] = {}
            for row in await self._reads.fetch(tenant_id, REGISTERED_BUCKETS, MOST_KNOWN):
                place = str(row["scope"]), str(row["scope_id"])
                rows = int(row["rows"]) if row["coded"] else 0
                found[place] = found.get(place, 0) + rows
            known = _Known(self._clock() + AGAIN, found)
            self._known.pop(tenant_id, None)
            self._known[tenant_id] = known
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return known.rows

    async def _index(self, key: Key) -> BucketIndex:
        kept = self._indexes.get(key)
        if kept is None or kept[0] <= self._clock():
            # One at a time, so that many who ask for the same read it once.
            async with self._reading:
                kept = self._indexes.get(key)
                if kept is None or kept[0] <= self._clock():
                    kept = await self._read(key)
        # The last used is the last to go.
        self._indexes.pop(key, None)
        self._indexes[key] = kept
        return kept[1]

    async def _read(self, key: Key) -> tuple[float, BucketIndex]:
        tenant_id, scope, scope_id = key
        [row] = await self._reads.fetch(tenant_id, CODED_ROWS, scope, scope_id)
        index = await read_text(len(row["terms"] or ()), BucketIndex.read, row)
        now = self._clock()
        self._indexes = {key: kept for key, kept in self._indexes.items() if kept[0] > now}
        while self._indexes and len(index.ids) + self._kept() > self._most_rows:
            del self._indexes[next(iter(self._indexes))]
        return now + AGAIN, index

    def _kept(self) -> int:
        return sum(len(index.ids) for _, index in self._indexes.values())

    def outdated(self, plan: SearchPlan) -> None:
        """Ask the database anew when the plan's buckets are searched next."""
        self._known.pop(plan.access.tenant_id, None)
        for bucket in plan.buckets:
            self._indexes.pop((plan.access.tenant_id, bucket.scope, bucket.scope_id), None)

    def forget(self, plan: SearchPlan) -> None:
        """Take the plan's buckets for small until the database is asked again."""
        known = self._known.get(plan.access.tenant_id)
        if known is not None:
            for bucket in plan.buckets:
                known.rows.pop((bucket.scope, bucket.scope_id), None)


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
