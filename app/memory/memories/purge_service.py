"""What time does to memories: those that expired are archived; what was deleted, refused or
expired long ago is removed for good, and so are expired idempotency keys.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial

import structlog

from app.identity.tenants.access import Access
from app.memory.memories.duplicates import EXPIRED
from app.memory.memories.maintenance_repository import MaintenanceRepository
from app.memory.memories.record_repository import RecordRepository
from app.memory.memories.repository import MemoryRepository
from app.platform.database.engine import Database
from app.platform.observability.metrics import MEMORY_EVENTS

log = structlog.get_logger()

BATCH = 1000

REASON = "purged"

Removed = Callable[[int], None]
"""Told after each batch how many rows it were."""


@dataclass(frozen=True, slots=True)
class Purged:
    """How much was removed, or is due; `expired` were archived, and are not gone."""

    expired: int
    memories: int
    idempotency_keys: int
    verdicts: int

    @property
    def total(self) -> int:
        return self.expired + self.memories + self.idempotency_keys + self.verdicts


class PurgeService:
    """One tenant at a time, in small transactions; the service goes on answering."""

    def __init__(self, database: Database, *, batch: int = BATCH) -> None:
        """Purge in `database`, at most `batch` rows in one transaction."""
        self._database = database
        self._batch = batch

    async def due(self, tenant_id: str, *, age: timedelta) -> Purged:
        """What `purge` would do."""
        async with self._database.begin(tenant_id) as db:
            repository = MaintenanceRepository(db, tenant_id)
            return Purged(
                expired=await repository.count_expired(),
                memories=await repository.count_gone(age),
                idempotency_keys=await repository.count_expired_keys(),
                verdicts=await repository.count_refused(age),
            )

    async def purge(
        self, tenant_id: str, *, age: timedelta, removed: Removed, job_id: str | None = None
    ) -> Purged:
        """Archive what has expired, and remove what went at least `age` ago.

        Safe to repeat and to run twice at once. An archived memory leaves a line ARCHIVE in
        the history. A removed one, deleted or expired at least `age` ago, leaves a line
        DELETE without words.

        Args:
            tenant_id: whose.
            age: how long what was deleted, refused or expired is kept.
            removed: told after each batch how many rows it were.
            job_id: the job that does it, for the history.

        """
        done = [
            await _all(batch, removed)
            for batch in (
                partial(self._archive_expired, tenant_id, job_id),
                partial(self._purge_memories, tenant_id, age, job_id),
                partial(self._purge_keys, tenant_id),
                partial(self._purge_verdicts, tenant_id, age),
            )
        ]
        purged = Purged(*done)
        log.info("tenant_purged", tenant_id=tenant_id, **asdict(purged))
        return purged

    async def _archive_expired(self, tenant_id: str, job_id: str | None) -> int:
        async with self._database.begin(tenant_id) as db:
            changes = await MaintenanceRepository(db, tenant_id).archive_expired(self._batch)
            await RecordRepository(db, Access(tenant_id)).note(
                changes, actor=None, reason=EXPIRED, job_id=job_id
            )
        MEMORY_EVENTS.labels("ARCHIVE").inc(len(changes))
        return len(changes)

    async def _purge_memories(self, tenant_id: str, age: timedelta, job_id: str | None) -> int:
        access = Access(tenant_id)
        async with self._database.begin(tenant_id) as db:
            ids = await MaintenanceRepository(db, tenant_id).lock_gone(age, self._batch)
            if ids:
                await RecordRepository(db, access).note_deletion(
                    ids, hard=True, actor=None, reason=REASON, job_id=job_id
                )
                await MemoryRepository(db, access).purge(ids)
        return len(ids)

    async def _purge_keys(self, tenant_id: str) -> int:
        async with self._database.begin(tenant_id) as db:
            return await MaintenanceRepository(db, tenant_id).delete_expired_keys(self._batch)

    async def _purge_verdicts(self, tenant_id: str, age: timedelta) -> int:
        async with self._database.begin(tenant_id) as db:
            return await MaintenanceRepository(db, tenant_id).delete_refused(age, self._batch)


async def _all(batch: Callable[[], Awaitable[int]], removed: Removed) -> int:
    total = 0
    while count := await batch():
        total += count
        removed(count)
    return total
