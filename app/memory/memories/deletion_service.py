"""Deletions that are no single request: what has expired or was deleted long ago, and selections
too large for one transaction.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from app.identity.tenants.access import Access
from app.memory.memories.duplicates import EXPIRED
from app.memory.memories.filters import with_composed_ids
from app.memory.memories.maintenance_repository import MaintenanceRepository
from app.memory.memories.record_repository import RecordRepository
from app.memory.memories.repository import MemoryRepository
from app.platform.database.base import new_id
from app.platform.database.engine import Database
from app.platform.jobs.failures import GiveUpJobError, LeaseLostError
from app.platform.jobs.orders import ClaimedJob, Order
from app.platform.jobs.repository import JobRepository
from app.platform.observability.metrics import MEMORY_EVENTS

log = structlog.get_logger()

BATCH = 1000

REASON = "purged"

Removed = Callable[[int], None]
"""Called after each batch with the number of rows."""


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
        """How much `purge` would archive and remove now."""
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
        DELETE without content.

        Args:
            tenant_id: the tenant to purge.
            age: how long what was deleted, refused or expired is kept.
            removed: called after each batch with the number of rows.
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


KIND = "delete_memories"

MOST_AT_ONCE = 10_000
"""What is selected beyond it is deleted by a job."""

ATTEMPTS = 20
"""What one attempt deleted stays deleted, so a further one only goes on."""


@dataclass(frozen=True, slots=True)
class DeleteSelection:
    """Memories to delete, as far as the caller may see them.

    Args:
        equal: column to the value it must have; never empty together with `filters`.
        filters: the grammar of `filters.py`.
        knowledge: whether what all users of an agent share is among them.
        hard: remove them at once.
        reason: for the history.

    """

    access: Access
    equal: Mapping[str, Any]
    filters: Mapping[str, Any] | None
    knowledge: bool
    hard: bool
    reason: str | None

    def order(self, creator: str) -> Order:
        """The job that deletes them, ordered by the key `creator`; each order makes a new job."""
        return Order(
            kind=KIND,
            key=new_id("del"),
            user_id=self.equal.get("user_id") or self.access.user_id,
            agent_id=self.access.agent_id or self.equal.get("agent_id"),
            creator=creator,
            payload={
                "restriction": {
                    "agent_id": self.access.agent_id, "user_id": self.access.user_id,
                },
                "equal": dict(self.equal),
                "filters": with_composed_ids(self.filters),
                "knowledge": self.knowledge,
                "hard": self.hard,
                "reason": self.reason,
            },
            max_attempts=ATTEMPTS,
        )  # fmt: skip

    @classmethod
    def of(cls, job: ClaimedJob) -> "DeleteSelection":
        """What a job is to delete.

        Raises:
            GiveUpJobError: it does not say, which must never mean everything.

        """
        payload = job.payload
        if not payload.get("equal") and not payload.get("filters"):
            raise GiveUpJobError("selection_missing", "The job does not say what to delete.")
        return cls(
            access=Access(job.tenant_id, **payload["restriction"]),
            equal=payload["equal"],
            filters=payload["filters"],
            knowledge=payload["knowledge"],
            hard=payload["hard"],
            reason=payload["reason"],
        )


class BulkDeletion:
    """The handler of `KIND`."""

    def __init__(self, database: Database, *, batch: int = BATCH) -> None:
        """Delete in `database`, at most `batch` memories in one transaction."""
        self._database = database
        self._batch = batch

    async def __call__(self, job: ClaimedJob) -> dict[str, Any]:
        """Delete what was selected when the job was ordered; returns how many.

        An attempt that continues an interrupted one counts only its own deletions.

        Raises:
            GiveUpJobError: the job does not say what to delete.
            LeaseLostError: the job is no longer this worker's; what is deleted stays deleted.

        """
        selection = DeleteSelection.of(job)
        deleted, last = 0, ""
        while True:
            seen, count = await self._delete_next(job, selection, last)
            if seen is None:
                break
            last = seen
            deleted += count
        log.info("memories_deleted", count=deleted, hard=selection.hard, job_id=job.job_id)
        return {"deleted": deleted}

    async def _delete_next(
        self, job: ClaimedJob, selection: DeleteSelection, last: str
    ) -> tuple[str | None, int]:
        """The last id of the next batch, None when there was none, and how many it deleted.

        Raises:
            LeaseLostError: the job is no longer this worker's.

        """
        async with self._database.begin(job.tenant_id) as db:
            # A cancelled job stops here instead of at the next heartbeat.
            row = await JobRepository(db, job.tenant_id).get(job.job_id)
            if row.lease_token != job.lease_token:
                raise LeaseLostError
            repository = MaintenanceRepository(db, job.tenant_id)
            seen, ids = await repository.lock_next_selected(
                selection.access,
                selection.equal,
                selection.filters,
                knowledge=selection.knowledge,
                before=job.create_time,
                after=last,
                limit=self._batch,
            )
            if ids:
                await RecordRepository(db, selection.access).note_deletion(
                    ids,
                    hard=selection.hard,
                    actor=job.creator,
                    reason=selection.reason,
                    job_id=job.job_id,
                )
                memories = MemoryRepository(db, selection.access)
                await (memories.purge(ids) if selection.hard else memories.delete(ids))
        return seen, len(ids)
