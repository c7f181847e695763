"""Which buckets are large, what this process knows of their rows, and which searches of them rank
candidates instead of every row.

Where most memories of a bucket have short codes, all that the choice of candidates needs of them is
kept in memory (`bucket_index.py`, `docs/decisions/0024`).
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

import asyncpg
import numpy as np
import structlog

from app.errors import UnavailableError
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

MOST_ROWS: Final = 200_000
"""Of the buckets of a search: while one is read it takes some 0.8 to 2 kB a row."""

MOST_BYTES: Final = 64_000_000
"""Of all indexes that a process keeps: some 160 to 250 bytes a row."""

AGAIN: Final = 300.0
"""Seconds after which a process asks again which buckets of a tenant are large, and reads an
index anew."""

PAUSE: Final = 5.0
"""Seconds between two readings of a bucket: while codes are made it changes all the time."""

Key = tuple[str, str, str]
"""Tenant, scope and id of a bucket."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Known:
    """The registered buckets of a tenant: scope and id of each, and how many rows with codes."""

    until: float
    rows: dict[tuple[str, str], int]


class LargeBuckets:
    """Which buckets housekeeping has given codes, and their rows, as this process last read them.

    Nobody waits for a reading: whoever searches meanwhile ranks every row. A bucket whose rows
    have changed since is noticed by its state (`candidates_sql.py`).
    """

    def __init__(
        self,
        reads: HotReads,
        clock: Callable[[], float] = monotonic,
        *,
        least: int = LARGE,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Take buckets of at least `least` rows for large, and keep so many bytes at most."""
        self._reads = reads
        self._least = least
        self._most_bytes = most_bytes
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._indexes: dict[Key, tuple[float, BucketIndex]] = {}
        self._small: dict[Key, float] = {}
        self._not_before: dict[Key, float] = {}
        self._reading: dict[Key, asyncio.Task[None]] = {}

    async def aclose(self) -> None:
        """End what is being read."""
        reading = list(self._reading.values())
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)

    async def indexes(self, plan: SearchPlan) -> Sequence[BucketIndex]:
        """Of all rows with codes of the plan's buckets, if one of these is large and all have been
        read; else none. What is missing is being read then.

        Now and then asks the database which buckets there are.
        """
        keys = await self._large(plan)
        kept = [self._kept(key) for key in keys]
        return [index for index in kept if index is not None] if None not in kept else ()

    async def settled(self) -> None:
        """Wait until what is being read has been read."""
        await asyncio.gather(*map(asyncio.shield, self._reading.values()))

    async def _large(self, plan: SearchPlan) -> list[Key]:
        """The registered buckets of the plan, if one of them is large; else none."""
        tenant_id = plan.access.tenant_id
        known = await self._registered(tenant_id)
        places = [(each.scope, each.scope_id) for each in plan.buckets]
        sizes = [known[place] for place in places if place in known]
        keys = [(tenant_id, *place) for place in places if place in known]
        fits = self._least <= max(sizes, default=0) <= sum(sizes) <= MOST_ROWS
        return [] if not fits or any(self._is_small(key) for key in keys) else keys

    def _is_small(self, key: Key) -> bool:
        until = self._small.get(key)
        if until is not None and until <= self._clock():
            del self._small[key]
        return key in self._small

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

    def _kept(self, key: Key) -> BucketIndex | None:
        """The index, which was used last now; None where it is being read."""
        until, index = self._indexes.pop(key, (0.0, None))
        if index is not None and until > self._clock():
            self._indexes[key] = until, index
            return index
        if key not in self._reading and self._not_before.get(key, 0.0) <= self._clock():
            self._not_before.pop(key, None)
            self._reading[key] = asyncio.create_task(self._read(key))
        return None

    async def _read(self, key: Key) -> None:
        """Read the index of a bucket and keep it; a bucket that cannot be read is small."""
        tenant_id, scope, scope_id = key
        try:
            [row] = await self._reads.fetch(tenant_id, CODED_ROWS, scope, scope_id)
            index = await read_text(len(row["terms"] or ()), BucketIndex.read, row)
        except (UnavailableError, asyncpg.PostgresError) as error:
            log.warning("bucket_not_read", tenant_id=tenant_id, error=type(error).__name__)
            self._small[key] = self._clock() + AGAIN
        else:
            self._keep(key, index)
        finally:
            del self._reading[key]

    def _keep(self, key: Key, index: BucketIndex) -> None:
        if index.size > self._most_bytes:
            self._small[key] = self._clock() + AGAIN
            return
        self._drop_old()
        while self._indexes and index.size + self._size() > self._most_bytes:
            del self._indexes[next(iter(self._indexes))]
        self._indexes[key] = self._clock() + AGAIN, index
        # Nobody may search any more: what is kept of somebody ends nevertheless.
        asyncio.get_running_loop().call_later(AGAIN, self._drop_old)

    def _drop_old(self) -> None:
        now = self._clock()
        self._indexes = {key: kept for key, kept in self._indexes.items() if kept[0] > now}
        self._not_before = {key: then for key, then in self._not_before.items() if then > now}

    def _size(self) -> int:
        return sum(index.size for _, index in self._indexes.values())

    def outdated(self, plan: SearchPlan, states: Collection[str]) -> None:
        """Ask the database anew when the plan's buckets are searched next, but for what was read
        since an index of one of `states`.
        """
        self._known.pop(plan.access.tenant_id, None)
        for bucket in plan.buckets:
            key = plan.access.tenant_id, bucket.scope, bucket.scope_id
            _, index = self._indexes.get(key, (0.0, None))
            if index is not None and index.states <= set(states):
                del self._indexes[key]
                self._not_before[key] = self._clock() + PAUSE

    def forget(self, plan: SearchPlan) -> None:
        """Take the plan's buckets for small for a while."""
        for bucket in plan.buckets:
            key = plan.access.tenant_id, bucket.scope, bucket.scope_id
            self._small[key] = self._clock() + AGAIN


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
