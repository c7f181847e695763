"""Which memories a session's context has shown, collected and written after the answers.

A context never writes. What it showed is collected here and written in batches. When the process
dies, at most about a second of it is lost; then an echo of such a memory may be extracted again.
"""

from collections.abc import Iterable
from datetime import datetime
from time import monotonic
from typing import Final

from app.platform.database.engine import Database
from app.platform.observability.metrics import INJECTIONS_DROPPED
from app.prompting.context.context_sql import NOTE_SHOWN

ROWS_PER_FLUSH: Final = 1_000

FLUSH_SECONDS: Final = 0.8
"""Longest time of a flush, which comes every second: an extraction that follows at once should know
what was shown."""

WAITING: Final = 50_000
"""Most pairs that wait to be written; further ones are dropped, so that memory stays bounded."""

_Shown = tuple[str, str]
"""A session and a memory."""


class Injections:
    """Collects what contexts show. Use it from one event loop only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shown: dict[str, dict[_Shown, datetime]] = {}
        self._waiting = 0

    def note(
        self, tenant_id: str, session_id: str, memory_ids: Iterable[str], at: datetime
    ) -> None:
        """Note that a session's context shows these memories; waits for nothing."""
        shown = self._shown.setdefault(tenant_id, {})
        for memory_id in memory_ids:
            pair = (session_id, memory_id)
            if pair not in shown:
                if self._waiting >= WAITING:
                    INJECTIONS_DROPPED.inc()
                    continue
                self._waiting += 1
            shown[pair] = at

    async def flush(self, *, everything: bool = False) -> None:
        """Write what was noted, oldest first, for at most FLUSH_SECONDS.

        A batch has a single tenant, as row-level security demands. What could not be written
        stays noted, and the error is raised.

        Args:
            everything: write all of it, however long it takes; for the end of the process.

        """
        until = monotonic() + FLUSH_SECONDS
        while self._shown and (everything or monotonic() < until):
            tenant_id, shown = next(iter(self._shown.items()))
            # Removed before it is written: what is noted meanwhile is written the next time.
            batch = {pair: shown.pop(pair) for pair in list(shown)[:ROWS_PER_FLUSH]}
            # The next tenant comes first the next time.
            del self._shown[tenant_id]
            if shown:
                self._shown[tenant_id] = shown
            try:
                if batch:
                    await self._write(tenant_id, batch)
            except BaseException:
                since = self._shown.setdefault(tenant_id, {})
                self._waiting -= len(batch.keys() & since.keys())
                self._shown[tenant_id] = batch | since
                raise
            self._waiting -= len(batch)

    async def _write(self, tenant_id: str, batch: dict[_Shown, datetime]) -> None:
        async with self._database.begin(tenant_id) as db:
            await db.execute(
                NOTE_SHOWN,
                {
                    "tenant_id": tenant_id,
                    "sessions": [session_id for session_id, _ in batch],
                    "memories": [memory_id for _, memory_id in batch],
                    "times": list(batch.values()),
                },
            )
