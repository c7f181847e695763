"""The handler of the job `forget`: for every tenant once an hour, and when it is ordered."""

from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.governance.forgetting.schemas import STEPS
from app.governance.forgetting.steps import Forgetting
from app.platform.jobs.failures import LeaseLostError
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository

log = structlog.get_logger()


class ForgettingJobs:
    def __init__(self, forgetting: Forgetting) -> None:
        self._forgetting = forgetting

    async def forget(self, job: ClaimedJob) -> dict[str, Any]:
        """Rows forgotten, by step and in total. An attempt that continues an interrupted one
        counts only its own rows.

        Raises:
            LeaseLostError: another worker has the job, or it was cancelled; what is committed
                stays.

        """

        async def allowed(db: AsyncSession) -> None:
            """Raises LeaseLostError."""
            # A cancelled job stops here, without waiting for the next heartbeat.
            row = await JobRepository(db, job.tenant_id).get(job.job_id)
            if row.lease_token != job.lease_token:
                raise LeaseLostError

        wanted = job.payload.get("steps")
        counts = await self._forgetting.run(
            job.tenant_id,
            [step for step in STEPS if wanted is None or step in wanted],
            job.payload.get("agent_id"),
            job_id=job.job_id,
            allowed=allowed,
        )
        total = sum(counts.values())
        log.info(
            "forgetting_completed",
            tenant_id=job.tenant_id,
            job_id=job.job_id,
            total=total,
            **counts,
        )
        return {**counts, "total": total}
