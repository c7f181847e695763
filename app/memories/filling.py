"""Memories that no analyser has read yet, or an older one: their words become findable.

Read, think and write are apart, in batches: it can be stopped anywhere and goes on where it was.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from app.database.engine import Database
from app.memories.maintenance_repository import MaintenanceRepository
from app.memories.searchable import with_terms

BATCH: Final = 200


def _nobody(_count: int) -> None:
    """Nobody watches."""


class MemoryFilling:
    """Reads what an older release stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, tenant_id: str) -> int:
        """How many memories wait."""
        async with self._database.begin(tenant_id) as db:
            return await MaintenanceRepository(db, tenant_id).count_unread()

    async def read(
        self, tenant_id: str, *, most: int | None, finished: Callable[[int], None] = _nobody
    ) -> int:
        """Read waiting memories; how many it were. Neither version nor history move.

        One that somebody edits meanwhile is left to them: an edit reads it, too.

        Args:
            most: stop after so many; None for all.
            finished: told after each batch how many it were.

        """
        total = 0
        while most is None or total < most:
            limit = BATCH if most is None else min(BATCH, most - total)
            async with self._database.begin(tenant_id) as db:
                rows = await MaintenanceRepository(db, tenant_id).unread(limit)
            if not rows:
                break
            read = await asyncio.to_thread(with_terms, rows)
            async with self._database.begin(tenant_id) as db:
                written = await MaintenanceRepository(db, tenant_id).write_terms(read)
            if not written:
                # All of them are being edited or deleted.
                break
            total += written
            finished(written)
        return total
