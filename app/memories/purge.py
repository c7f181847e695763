"""Removing for good what was deleted or refused long ago, and expired idempotency keys."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta

import structlog

from app.database.engine import Database
from app.memories.maintenance_repository import MaintenanceRepository
from app.memories.records import RecordRepository
from app.memories.repository import MemoryRepository
from app.tenants.access import Access

log = structlog.get_logger()

BATCH = 1000

REASON = "purged"


@dataclass(frozen=True, slots=True)
class Purged:
    """How much was removed, or is due."""

    memories: int
    idempotency_keys: int
    verdicts: int

    @property
    def total(self) -> int:
        return self.memories + self.idempotency_keys + self.verdicts


class PurgeService:
    """One tenant at a time, in small transactions; the service goes on answering."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, tenant_id: str, *, age: timedelta) -> Purged:
        """What `purge` would remove."""
        async with self._database.begin(tenant_id) as db:
            repository = MaintenanceRepository(db, tenant_id)
            return Purged(
                memories=await repository.count_deleted(age),
                idempotency_keys=await repository.count_expired_keys(),
                verdicts=await repository.count_refused(age),
            )

    async def purge(
        self, tenant_id: str, *, age: timedelta, removed: Callable[[int], None]
    ) -> Purged:
        """Remove what was deleted or refused at least `age` ago.

        Safe to repeat and to run twice at once. Each memory leaves one line DELETE in the
        history, without words.

        Args:
            removed: told after each batch how many it were.

        """
        memories = keys = verdicts = 0
        while count := await self._purge_memories(tenant_id, age):
            memories += count
            removed(count)
        while count := await self._purge_keys(tenant_id):
            keys += count
            removed(count)
        while count := await self._purge_verdicts(tenant_id, age):
            verdicts += count
            removed(count)
        purged = Purged(memories, keys, verdicts)
        log.info("tenant_purged", tenant_id=tenant_id, **asdict(purged))
        return purged

    async def _purge_memories(self, tenant_id: str, age: timedelta) -> int:
        access = Access(tenant_id)
        async with self._database.begin(tenant_id) as db:
            ids = await MaintenanceRepository(db, tenant_id).lock_deleted(age, BATCH)
            if ids:
                records = RecordRepository(db, access)
                await records.note_deletion(ids, hard=True, actor=None, reason=REASON)
                await MemoryRepository(db, access).purge(ids)
        return len(ids)

    async def _purge_keys(self, tenant_id: str) -> int:
        async with self._database.begin(tenant_id) as db:
            return await MaintenanceRepository(db, tenant_id).delete_expired_keys(BATCH)

    async def _purge_verdicts(self, tenant_id: str, age: timedelta) -> int:
        async with self._database.begin(tenant_id) as db:
            return await MaintenanceRepository(db, tenant_id).delete_refused(age, BATCH)
