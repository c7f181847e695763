"""Deleting more memories than one transaction should hold: a job, and batches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from app.identity.tenants.access import Access
from app.memory.memories.maintenance_repository import MaintenanceRepository
from app.memory.memories.record_repository import RecordRepository
from app.memory.memories.repository import MemoryRepository
from app.platform.database.engine import Database
from app.platform.database.ids import new_id
from app.platform.jobs.errors import GiveUpJobError, LeaseLostError
from app.platform.jobs.orders import ClaimedJob, Order
from app.platform.jobs.repository import JobRepository

log = structlog.get_logger()

KIND = "delete_memories"

MOST_AT_ONCE = 10_000
"""What is selected beyond it is deleted by a job."""

BATCH = 1000

ATTEMPTS = 20
"""What one attempt deleted stays deleted, so a further one only goes on."""


@dataclass(frozen=True, slots=True)
class DeleteSelection:
    """Memories to delete, as far as whoever asked may see them.

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
        """The job that deletes them, asked for by the key `creator`. Each is one of its own."""
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
                "filters": self.filters,
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
        """Delete what was selected and there when it was asked for; how many it were.

        An attempt that goes on where another was interrupted counts its own.

        Raises:
            GiveUpJobError: the job does not say what to delete.
            LeaseLostError: the job is not this worker's any more; what is deleted stays so.

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
        """The last id of the next batch, None when there was none, and how many it deleted."""
        async with self._database.begin(job.tenant_id) as db:
            # Cancelled, it stops here, and not only with the next heartbeat.
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
