"""/v1/memories/{memory_id}/feedback and /v1/feedback"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.conversation.sessions.schemas import SessionNotFoundError
from app.errors import DisabledError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.memory.feedback.schemas import (
    FeedbackAdded,
    FeedbackCreate,
    FeedbackRead,
    FeedbackStats,
    FeedbackStatsQuery,
    SensitiveCommentError,
    UseReport,
    UseReported,
)
from app.memory.feedback.service import FeedbackService
from app.memory.memories.errors import MemoryNotFoundError
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page, PageQuery
from app.platform.work.unit import MemoryDisabledError

router = APIRouter(prefix="/v1", tags=["feedback"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[FeedbackService, provided(FeedbackService)]


@router.post(
    "/memories/{memory_id}/feedback",
    status_code=201,
    responses=responses_for(
        MemoryNotFoundError,
        SensitiveCommentError,
        DisabledError,
        MemoryDisabledError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def add_feedback(
    memory_id: Id,
    body: FeedbackCreate,
    principal: WriterDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> FeedbackAdded:
    """Say that a memory is helpful, wrong or outdated. It is recorded and changes no memory."""
    return await service.add(principal, memory_id, body, key=key)


@router.get(
    "/memories/{memory_id}/feedback",
    responses=responses_for(MemoryNotFoundError, InvalidCursorError),
)
async def list_feedback(
    memory_id: Id,
    query: Annotated[PageQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[FeedbackRead]:
    """What was said of a memory, newest first."""
    return await service.list_feedback(principal, memory_id, query)


@router.post(
    "/feedback/used",
    responses=responses_for(SessionNotFoundError, MemoryDisabledError, *IDEMPOTENCY_ERRORS),
)
async def report_use(
    body: UseReport, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> UseReported:
    """Say which memories of a session's contexts an answer drew on. It changes no memory."""
    return await service.report_use(principal, body, key=key)


@router.get("/feedback/stats")
async def get_feedback_stats(
    query: Annotated[FeedbackStatsQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> FeedbackStats:
    """Count feedback by rating."""
    return await service.stats(principal, query)
