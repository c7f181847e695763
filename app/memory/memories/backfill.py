"""Memories that no analyser has read yet, or an older one: their words become findable.

So do those that a change replaced, for searches of what was known then. Read, think and write are
apart, in batches: it can be stopped anywhere and goes on where it was.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from app.memory.memories.maintenance_repository import MaintenanceRepository
from app.memory.memories.searchable import row_terms, with_terms
from app.platform.database.engine import Database

BATCH: Final = 200


def _nobody(_count: int) -> None:
    """Nobody watches."""


class MemoryBackfill:
    """Reads what an older release stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, tenant_id: str) -> int:
        """How many memories wait, and words that were replaced."""
        async with self._database.begin(tenant_id) as db:
            repository = MaintenanceRepository(db, tenant_id)
            return await repository.count_unread() + await repository.count_unread_past()

    async def read(
        self, tenant_id: str, *, most: int | None, finished: Callable[[int], None] = _nobody
    ) -> int:
        """Read waiting memories, then words that were replaced; how many it were.

        Neither version nor history move. A memory that somebody edits meanwhile is left to
        them: an edit reads it, too.

        Args:
            most: stop after so many; None for all.
            finished: told after each batch how many it were.

        """
        total = 0
        for read in (self._present, self._past):
            while most is None or total < most:
                limit = BATCH if most is None else min(BATCH, most - total)
                written = await read(tenant_id, limit)
                if not written:
                    # None waits, or all of them are being edited or deleted.
                    break
                total += written
                finished(written)
        return total

    async def _present(self, tenant_id: str, limit: int) -> int:
        async with self._database.begin(tenant_id) as db:
            rows = await MaintenanceRepository(db, tenant_id).unread(limit)
        if not rows:
            return 0
        read = await asyncio.to_thread(with_terms, rows)
        async with self._database.begin(tenant_id) as db:
            return await MaintenanceRepository(db, tenant_id).write_terms(read)

    async def _past(self, tenant_id: str, limit: int) -> int:
        async with self._database.begin(tenant_id) as db:
            rows = await MaintenanceRepository(db, tenant_id).unread_past(limit)
        if not rows:
            return 0
        read = await asyncio.to_thread(_with_past_terms, rows)
        async with self._database.begin(tenant_id) as db:
            return await MaintenanceRepository(db, tenant_id).write_past_terms(read)


def _with_past_terms(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of the history, with what the analyser makes of what they keep."""
    read = []
    for row in rows:
        was = row["before"]
        since = was["valid_from"] and datetime.fromisoformat(was["valid_from"])
        read.append(row | row_terms(was["content"], was["metadata"], since or None))
    return read
