"""The handler of jobs `graph_tidy`, ordered by changes of memories.

One job, one bucket, one transaction: when a worker is killed, all of the job stays pending.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from app.identity.tenants.access import Access
from app.identity.tenants.repository import TenantRepository
from app.memory.graph.memory_reader import MemoryReader
from app.memory.graph.owner_repository import OwnerRepository
from app.memory.graph.refresh_repository import GraphRefresh
from app.memory.graph.relation_repository import RelationTimeline
from app.memory.memories.refreshes import bucket_of, reworded_ids, unread_ids
from app.memory.memories.repository import MemoryRepository
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.platform.work.unit import Work

SWITCHED_OFF: Final = timedelta(minutes=5)
DISABLED: Final = timedelta(hours=1)
"""How long a job waits before it checks again whether it may run."""


class GraphJobs:
    """Refreshes graphs from their memories."""

    def __init__(
        self,
        work: Work,
        reader: MemoryReader,
        now: Callable[[], datetime],
    ) -> None:
        self._work = work
        self._reader = reader
        self._now = now

    async def refresh(self, job: ClaimedJob) -> None:
        """Refresh one graph, and finish the job. Safe to repeat.

        Raises:
            DeferJobError: memory is switched off, or the tenant is disabled.
            LeaseLostError: another worker has done it, or the job was erased with its user.

        """
        if not self._work.enabled:
            raise DeferJobError(self._now() + SWITCHED_OFF, "memory_disabled")
        bucket = bucket_of(job.key)
        now = self._now()
        access = Access(job.tenant_id)
        async with self._work.write(job, while_disabled=True) as unit:
            tenant = await TenantRepository(unit.db, job.tenant_id).get()
            if tenant.status == 0:
                raise DeferJobError(now + DISABLED, "tenant_disabled")
            read = unread_ids(job.payload)
            jobs = JobRepository(unit.db, job.tenant_id)
            timeline = RelationTimeline(unit.db, access, now=now, job_id=job.job_id)
            refresh = GraphRefresh(unit.db, job.tenant_id, bucket, timeline)
            # In an empty graph there is nothing to mention, and nothing that lost its support.
            if await refresh.is_empty() and not await self._reader.finds_relations(
                await refresh.readable(read)
            ):
                await jobs.finish(job, {})
                return
            await MemoryRepository(unit.db, access).lock_bucket(*bucket)
            await OwnerRepository(unit.db, job.tenant_id).hold_all(bucket, read)
            counts = {"reworded": await refresh.drop_reworded(reworded_ids(job.payload), now)}
            memories = await refresh.readable(read)
            counts |= await self._reader.read(
                unit.db, access, memories, tenant.config, job_id=job.job_id, now=now
            )
            # Whatever ordered it: a job that was to do so may have been cancelled.
            counts |= {
                "reopened": await refresh.reopen(now),
                "closed": await refresh.close(now),
                "removed": sum((await refresh.forget()).values()),
            }
            await jobs.finish(job, {name: count for name, count in counts.items() if count})
