"""Use cases of jobs: list, retry, cancel."""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import get_args

import structlog

from app.governance.operations.repository import JobStatsRepository
from app.governance.operations.schemas import JobQuery, JobRead, JobStats, JobStatus
from app.identity.tenants.access import Access, Principal
from app.platform.jobs.failures import JobNotFoundError
from app.platform.jobs.models import Job
from app.platform.jobs.repository import JobRepository
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()


class JobService:
    """A restricted key sees the jobs of its agent, of its user, or of both together."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def list_jobs(self, principal: Principal, query: JobQuery) -> Page[JobRead]:
        """A page of jobs, newest first; empty when the filter asks for what the key may not see."""
        start = decode_time(query.cursor, "jobs")
        equal = query.model_dump(exclude={"limit", "cursor"}, exclude_none=True)
        own = _restriction(principal.access)
        if any(equal.get(name, value) != value for name, value in own.items()):
            return Page(items=[])
        async with self._work.read(principal) as db:
            rows = await JobRepository(db, principal.tenant_id).list_jobs(
                **(equal | own), start=start, limit=query.limit
            )
        return page(
            "jobs",
            rows,
            query.limit,
            show=JobRead.model_validate,
            place=lambda row: (row.create_time, row.job_id),
        )

    async def get(self, principal: Principal, job_id: str) -> JobRead:
        """The job.

        Raises:
            JobNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            row = await _visible(JobRepository(db, principal.tenant_id), principal.access, job_id)
            return JobRead.model_validate(row)

    async def retry(
        self, principal: Principal, job_id: str, *, key: IdempotencyKey | None = None
    ) -> JobRead:
        """Make a dead or cancelled job pending again, due at once.

        Raises:
            JobNotFoundError: there is none for this caller.
            JobNotRetryableError: it has not ended, it succeeded, or its subject is deleted.
            JobAlreadyLiveError: another job of the same kind and key is live.

        """
        row = await self._change(principal, job_id, key, lambda jobs: jobs.retry(job_id))
        log.info("job_retried", job_id=job_id, kind=row.kind)
        return row

    async def cancel(
        self, principal: Principal, job_id: str, *, key: IdempotencyKey | None = None
    ) -> JobRead:
        """Cancel a job; a running job can commit nothing any more.

        Raises:
            JobNotFoundError: there is none for this caller.
            JobNotCancellableError: it has ended.

        """
        row = await self._change(principal, job_id, key, lambda jobs: jobs.cancel(job_id))
        log.info("job_cancelled", job_id=job_id, kind=row.kind)
        return row

    async def _change(
        self,
        principal: Principal,
        job_id: str,
        key: IdempotencyKey | None,
        change: Callable[[JobRepository], Awaitable[Job]],
    ) -> JobRead:
        async with self._work.write(principal, key, while_disabled=True) as unit:
            jobs = JobRepository(unit.db, principal.tenant_id)
            await _visible(jobs, principal.access, job_id)
            shown = JobRead.model_validate(await change(jobs))
            return unit.answer(shown, 200, user_id=shown.user_id)

    async def stats(self, principal: Principal) -> JobStats:
        """Counts of the jobs that the caller may see; `oldest_due` is None when none is due."""
        async with self._work.read(principal) as db:
            rows = await JobStatsRepository(db, principal.access).counts()
        by_status: dict[JobStatus, int] = dict.fromkeys(get_args(JobStatus), 0)
        by_kind: dict[str, dict[JobStatus, int]] = defaultdict(dict)
        for row in rows:
            by_status[row.status] += row.jobs
            by_kind[row.kind][row.status] = row.jobs
        return JobStats(
            total=sum(by_status.values()),
            by_status=by_status,
            by_kind=by_kind,
            due=sum(row.due for row in rows),
            oldest_due=min((row.oldest for row in rows if row.oldest), default=None),
            dead=by_status["dead"],
        )


def _restriction(access: Access) -> dict[str, str]:
    own = {"user_id": access.user_id, "agent_id": access.agent_id}
    return {name: value for name, value in own.items() if value is not None}


async def _visible(jobs: JobRepository, access: Access, job_id: str) -> Job:
    """Raises JobNotFoundError."""
    row = await jobs.get(job_id)
    if any(getattr(row, name) != value for name, value in _restriction(access).items()):
        raise JobNotFoundError(job_id)
    return row
