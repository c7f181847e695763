"""Which memories stood in which session's context, gathered and written behind the answers.

A context never writes. What it showed gathers here and is written a batch at a time; what is lost
when the process dies is what was not written yet, a second's worth, and costs no more than that
an echo of it may be proposed again.
"""

from collections.abc import Iterable
from datetime import datetime
from time import monotonic
from typing import Final

from app.platform.database.engine import Database
from app.platform.observability.metrics import INJECTIONS_DROPPED
from app.prompting.context.context_sql import NOTE_SHOWN

ROWS_PER_FLUSH: Final = 1_000

PATIENCE: Final = 0.8
"""Seconds that one flush may take, which comes every second: a reading that follows at once, as
a rescue does, should know what was shown."""

WAITING: Final = 50_000
"""Most that waits to be written; what comes beyond goes unnoted, which is better than growing
without bound."""

_Shown = tuple[str, str]
"""A session and a memory."""


class Injections:
    """Gathers what contexts show. Belongs to one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shown: dict[str, dict[_Shown, datetime]] = {}
        self._waiting = 0

    def note(
        self, tenant_id: str, session_id: str, memory_ids: Iterable[str], at: datetime
    ) -> None:
        """These memories stand in the session's context now."""
        shown = self._shown.setdefault(tenant_id, {})
        for memory_id in memory_ids:
            one = (session_id, memory_id)
            if one not in shown:
                if self._waiting >= WAITING:
                    INJECTIONS_DROPPED.inc()
                    continue
                self._waiting += 1
            shown[one] = at

    async def flush(self, *, everything: bool = False) -> None:
        """Write what was noted, oldest first: as much as PATIENCE allows, or all before the
        process ends. A batch is of one tenant, as row-level security wants it.
        """
        until = monotonic() + PATIENCE
        while self._shown and (everything or monotonic() < until):
            tenant_id, shown = next(iter(self._shown.items()))
            # Taken out before it is written: what is noted meanwhile is written the next time.
            batch = {one: shown.pop(one) for one in list(shown)[:ROWS_PER_FLUSH]}
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
