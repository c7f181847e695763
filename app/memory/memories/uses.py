"""How often and when memories were found, counted in memory and written in batches.

A write per search would make every read a write, and rewriting found rows as fast as they
are found would bloat the table that is searched. So uses gather here and a bounded number
of rows is written at a time. What is lost when the process dies are the counts not written
yet; the memories are never touched by it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from app.memory.memories.maintenance_repository import MaintenanceRepository
from app.platform.database.engine import Database

ROWS_PER_FLUSH = 200
"""Each takes 0.1 to 0.2 ms where the page has no room for a second version of the row, which then
goes into every index again: at one flush a second, 3 % of a core at the most."""

WAITING = 50_000
"""Most memories with unwritten counts; further ones go uncounted, which is better than
growing without bound."""


@dataclass(slots=True)
class _Use:
    count: int
    at: datetime


class MemoryUse:
    """Gathers uses. Belongs to one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._uses: dict[str, dict[str, _Use]] = {}
        self._waiting = 0

    def note(self, tenant_id: str, memory_ids: Iterable[str], at: datetime) -> None:
        """These memories were the answer to a query just now."""
        uses = self._uses.setdefault(tenant_id, {})
        for memory_id in memory_ids:
            use = uses.get(memory_id)
            if use is not None:
                use.count += 1
                use.at = max(use.at, at)
            elif self._waiting < WAITING:
                uses[memory_id] = _Use(1, at)
                self._waiting += 1

    async def flush(self, *, everything: bool = False) -> None:
        """Write counts, oldest first: one batch, or all of them before the process ends."""
        while self._uses:
            tenant_id, uses = next(iter(self._uses.items()))
            # Taken out before it is written: what is noted meanwhile counts the next time.
            batch = {memory_id: uses.pop(memory_id) for memory_id in list(uses)[:ROWS_PER_FLUSH]}
            # The next tenant comes first the next time.
            del self._uses[tenant_id]
            if uses:
                self._uses[tenant_id] = uses
            try:
                if batch:
                    await self._write(tenant_id, batch)
            except BaseException:
                self._take_back(tenant_id, batch)
                raise
            self._waiting -= len(batch)
            if not everything:
                return

    def _take_back(self, tenant_id: str, batch: dict[str, _Use]) -> None:
        uses = self._uses.setdefault(tenant_id, {})
        for memory_id, unwritten in batch.items():
            since = uses.get(memory_id)
            if since is None:
                uses[memory_id] = unwritten
            else:
                since.count += unwritten.count
                self._waiting -= 1

    async def _write(self, tenant_id: str, batch: dict[str, _Use]) -> None:
        # One order of locks everywhere, so that two processes cannot wait for each other.
        ids = sorted(batch)
        async with self._database.begin(tenant_id) as db:
            await MaintenanceRepository(db, tenant_id).count_uses(
                ids,
                [batch[memory_id].count for memory_id in ids],
                [batch[memory_id].at for memory_id in ids],
            )
