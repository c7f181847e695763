"""/v1/jobs."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.governance.operations.schemas import JobQuery, JobRead, JobStats
from app.governance.operations.service import JobService
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.jobs.failures import (
    JobAlreadyLiveError,
    JobNotCancellableError,
    JobNotFoundError,
    JobNotRetryableError,
)
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[JobService, provided(JobService)]


@router.get("", responses=responses_for(InvalidCursorError))
async def list_jobs(
    query: Annotated[JobQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[JobRead]:
    """List jobs, newest first."""
    return await service.list_jobs(principal, query)


@router.get("/stats")
async def get_job_stats(principal: ReaderDep, service: ServiceDep) -> JobStats:
    """Count jobs by kind and status, and show since when the first has been due."""
    return await service.stats(principal)


@router.get("/{job_id}", responses=responses_for(JobNotFoundError))
async def get_job(job_id: Id, principal: ReaderDep, service: ServiceDep) -> JobRead:
    """Get a job: its status, its result, or why it failed."""
    return await service.get(principal, job_id)


@router.post(
    "/{job_id}/retry",
    responses=responses_for(
        JobNotFoundError, JobNotRetryableError, JobAlreadyLiveError, *IDEMPOTENCY_ERRORS
    ),
)
async def retry_job(
    job_id: Id, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> JobRead:
    """Try a dead or cancelled job again, at once."""
    return await service.retry(principal, job_id, key=key)


@router.post(
    "/{job_id}/cancel",
    responses=responses_for(JobNotFoundError, JobNotCancellableError, *IDEMPOTENCY_ERRORS),
)
async def cancel_job(
    job_id: Id, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> JobRead:
    """Cancel a job; what it has not committed is not done."""
    return await service.cancel(principal, job_id, key=key)
