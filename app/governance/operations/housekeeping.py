"""Maintenance of a tenant's rows: an hourly job of each tenant, and `kemem purge`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

import structlog

from app.conversation.messages.jobs import MessageBackfill
from app.errors import DomainError
from app.governance.operations.repository import OLD, JobMaintenanceRepository, Retention
from app.memory.memories.backfill import MemoryBackfill
from app.memory.memories.deletion_service import BATCH, PurgeService, Removed
from app.memory.memories.quantisation import QuantisationService
from app.platform.database.engine import Database
from app.platform.jobs.orders import ClaimedJob
from app.prompting.checkpoints.archive_service import CheckpointArchiving

log = structlog.get_logger()

KIND = "housekeeping"

MEMORIES_READ = 20_000
MESSAGES_READ = 20_000
"""How many older rows one run indexes for searches, some 20 s of work; `kemem reembed` indexes all
of them at once."""


def _ignore(_count: int) -> None:
    """A job reports no progress."""


class Housekeeping:
    """One tenant at a time, in small transactions; the service goes on answering."""

    def __init__(
        self,
        database: Database,
        retention: Retention,
        *,
        batch: int = BATCH,
        memories: MemoryBackfill | None = None,
        messages: MessageBackfill | None = None,
        quantisation: QuantisationService | None = None,
        checkpoints: CheckpointArchiving | None = None,
        statistics: Callable[[str], Awaitable[Mapping[str, int]]] | None = None,
    ) -> None:
        """Maintain `database`, at most `batch` rows in one transaction.

        Args:
            memories: makes missing search terms, for some memories on each run.
            messages: the same for messages.
            quantisation: makes and clears the codes of large buckets.
            checkpoints: archives old checkpoints, and expires approvals without an answer.
            statistics: counts what is shown later, before old rows go.

        """
        self._database = database
        self._retention = retention
        self._batch = batch
        self._memories = memories
        self._messages = messages
        self._quantisation = quantisation
        self._checkpoints = checkpoints
        self._statistics = statistics
        self._purging = PurgeService(database, batch=batch)

    async def __call__(self, job: ClaimedJob) -> dict[str, Any]:
        """The handler of `KIND`: rows by name."""
        return dict(await self.run(job.tenant_id, job_id=job.job_id))

    async def due(self, tenant_id: str) -> dict[str, int]:
        """What `run` would do, by name; changes nothing."""
        counts = asdict(await self._purging.due(tenant_id, age=self._retention.deleted))
        async with self._database.begin(tenant_id) as db:
            repository = JobMaintenanceRepository(db, tenant_id)
            for name in OLD:
                counts[name] = await repository.count(name, self._retention)
        if self._checkpoints is not None:
            counts |= await self._checkpoints.due(tenant_id)
        return counts

    async def run(
        self, tenant_id: str, *, removed: Removed = _ignore, job_id: str | None = None
    ) -> dict[str, int]:
        """Archive what has expired and remove what is old; rows by name.

        Safe to repeat and to run twice at once: each row goes once.

        Args:
            tenant_id: whose.
            removed: called after each batch with the number of its rows.
            job_id: the job that does it, for the history of memories.

        """
        counts: dict[str, int] = {}
        counts |= await self._count(tenant_id)
        purged = await self._purging.purge(
            tenant_id, age=self._retention.deleted, removed=removed, job_id=job_id
        )
        counts |= asdict(purged)
        for name in OLD:
            counts[name] = 0
            while count := await self._delete(tenant_id, name):
                counts[name] += count
                removed(count)
        if self._checkpoints is not None:
            counts |= await self._checkpoints.run(tenant_id, moved=removed)
        if self._memories is not None:
            counts["memories_read"] = await self._memories.read(tenant_id, most=MEMORIES_READ)
        if self._messages is not None:
            counts["messages_read"] = await self._messages.read(tenant_id, most=MESSAGES_READ)
        if self._quantisation is not None:
            for outcome in await self._quantisation.run(tenant_id):
                name = "codes_made" if outcome.task == "encode" else "codes_cleared"
                counts[name] = counts.get(name, 0) + outcome.rows
        log.info("housekeeping_completed", tenant_id=tenant_id, **counts)
        return counts

    async def _count(self, tenant_id: str) -> Mapping[str, int]:
        """Count what is shown later; what must go goes, whether or not it can be counted."""
        if self._statistics is None:
            return {}
        try:
            return await self._statistics(tenant_id)
        except DomainError as error:
            log.warning("statistics_postponed", tenant_id=tenant_id, code=error.code)
            return {}

    async def _delete(self, tenant_id: str, name: str) -> int:
        async with self._database.begin(tenant_id) as db:
            repository = JobMaintenanceRepository(db, tenant_id)
            return await repository.delete(name, self._retention, self._batch)
