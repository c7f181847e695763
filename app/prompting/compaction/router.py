"""/v1/sessions/{session_id}/compact and /summaries"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.conversation.messages.errors import InvalidStrategyError, UnknownStrategyError
from app.conversation.sessions.schemas import SessionNotFoundError
from app.errors import DisabledError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ModelUserDep,
    ReaderDep,
)
from app.identity.usage.quota import QuotaExhaustedError
from app.language.llm.errors import ModelUnavailableError, UnknownModelError
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id, OwnId
from app.platform.values.pagination import InvalidCursorError, Page
from app.platform.work.unit import MemoryDisabledError
from app.prompting.compaction.schemas import (
    CompactAnswer,
    CompactRequest,
    SummaryNotFoundError,
    SummaryQuery,
    SummaryRead,
)
from app.prompting.compaction.service import CompactionService

router = APIRouter(
    prefix="/v1/sessions/{session_id}", tags=["sessions"], responses=responses_for(*KEY_ERRORS)
)


ServiceDep = Annotated[CompactionService, provided(CompactionService)]


@router.post(
    "/compact",
    responses=responses_for(
        SessionNotFoundError,
        DisabledError,
        MemoryDisabledError,
        UnknownStrategyError,
        InvalidStrategyError,
        UnknownModelError,
        QuotaExhaustedError,
        ModelUnavailableError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def compact_session(
    session_id: OwnId,
    principal: ModelUserDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
    body: CompactRequest | None = None,
) -> CompactAnswer:
    """Put the older messages of the window into a summary; nothing is deleted."""
    return await service.compact(principal, session_id, body or CompactRequest(), key=key)


@router.get("/summaries", responses=responses_for(SessionNotFoundError, InvalidCursorError))
async def list_summaries(
    session_id: OwnId,
    query: Annotated[SummaryQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[SummaryRead]:
    """List a session's summaries, newest first."""
    return await service.list_summaries(principal, session_id, query)


@router.get(
    "/summaries/{summary_id}",
    responses=responses_for(SessionNotFoundError, SummaryNotFoundError),
)
async def get_summary(
    session_id: OwnId, summary_id: Id, principal: ReaderDep, service: ServiceDep
) -> SummaryRead:
    """One summary."""
    return await service.get(principal, session_id, summary_id)
