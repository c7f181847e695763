"""Archiving old checkpoints, expiring approvals, and removing parts of LangGraph's checkpoints
that never came, as parts of the housekeeping.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from app.platform.database.engine import Database
from app.prompting.checkpoints.approval_repository import ApprovalExpiry
from app.prompting.checkpoints.archive_repository import ArchiveRepository, pack, parts_of
from app.prompting.checkpoints.models import Checkpoint
from app.prompting.checkpoints.saver_thread_repository import (
    SaverThreadRepository,
    count_abandoned,
    find_abandoned,
)

BATCH = 20
"""Checkpoints of one transaction, which fit into memory with contents of a mebibyte each."""

PARTS_AGE = timedelta(hours=1)
"""For how long parts of a LangGraph checkpoint wait for the checkpoint."""

# Columns that live and archived checkpoints have alike.
_SHARED = (
    "tenant_id", "checkpoint_id", "session_id", "namespace", "parent_id", "step", "source",
    "reason", "metadata_", "message_seq", "set_aside", "in_context_from", "summary_ids",
    "size_bytes", "creator", "create_time",
)  # fmt: skip


class CheckpointArchiving:
    """One tenant at a time, in small transactions; the service goes on answering."""

    def __init__(self, database: Database, age: timedelta | None, *, batch: int = BATCH) -> None:
        """Archive checkpoints of `database`.

        Args:
            database: where they are.
            age: from which age a checkpoint is archived; None: never.
            batch: checkpoints of one transaction.

        """
        self._database = database
        self._age = age
        self._batch = batch

    async def due(self, tenant_id: str) -> dict[str, int]:
        """How many rows `run` would change, by name; changes nothing."""
        async with self._database.begin(tenant_id) as db:
            archived = 0
            if self._age is not None:
                archived = await ArchiveRepository(db, tenant_id).count(self._age)
            expired = await ApprovalExpiry(db, tenant_id).count()
            abandoned = await count_abandoned(db, tenant_id, PARTS_AGE)
        return {
            "checkpoints_archived": archived,
            "approvals_expired": expired,
            "saver_parts_removed": abandoned,
        }

    async def run(
        self, tenant_id: str, *, moved: Callable[[int], None] = lambda _count: None
    ) -> dict[str, int]:
        """Archive old checkpoints, expire approvals, remove parts; the number of rows by name.

        Safe to repeat and to run twice at once: each checkpoint is archived once.

        Args:
            tenant_id: the tenant.
            moved: called after each batch with its number of rows.

        """
        counts: dict[str, int] = {}
        for name, step in (
            ("checkpoints_archived", self._archive),
            ("approvals_expired", self._expire),
            ("saver_parts_removed", self._remove_parts),
        ):
            counts[name] = 0
            while count := await step(tenant_id):
                counts[name] += count
                moved(count)
        return counts

    async def _archive(self, tenant_id: str) -> int:
        if self._age is None:
            return 0
        async with self._database.begin(tenant_id) as db:
            archive = ArchiveRepository(db, tenant_id)
            taken = await archive.take(self._age, limit=self._batch)
            await archive.add(await asyncio.to_thread(_packed, taken))
            return len(taken)

    async def _expire(self, tenant_id: str) -> int:
        async with self._database.begin(tenant_id) as db:
            return await ApprovalExpiry(db, tenant_id).expire(limit=1000)

    async def _remove_parts(self, tenant_id: str) -> int:
        async with self._database.begin(tenant_id) as db:
            session_id = await find_abandoned(db, tenant_id, PARTS_AGE)
            if session_id is None:
                return 0
            thread = SaverThreadRepository(db, tenant_id, session_id)
            return await thread.remove_abandoned(PARTS_AGE)


def _packed(rows: Sequence[Checkpoint]) -> list[dict[str, Any]]:
    return [
        {name: getattr(row, name) for name in _SHARED} | {"compressed": pack(parts_of(row))}
        for row in rows
    ]
