"""/v1/sessions/{session_id}/extract and /v1/extractions"""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.conversation.sessions.schemas import SessionNotFoundError
from app.errors import DisabledError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ModelUserDep,
    ReaderDep,
)
from app.language.llm.errors import (
    EmbeddingUnavailableError,
    ModelUnavailableError,
    UnknownModelError,
)
from app.memory.extraction.schemas import (
    ExtractAnswer,
    ExtractionLimitError,
    ExtractRequest,
    RunNotFoundError,
    RunQuery,
    RunRead,
)
from app.memory.extraction.service import ExtractionService
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id, OwnId
from app.platform.values.pagination import InvalidCursorError, Page
from app.platform.work.unit import MemoryDisabledError, MemoryPausedError

router = APIRouter(tags=["extraction"], responses=responses_for(*KEY_ERRORS))

ExtractionDep = Annotated[ExtractionService, provided(ExtractionService)]


@router.post(
    "/v1/sessions/{session_id}/extract",
    responses={
        202: {"model": ExtractAnswer, "description": "Not everything is read yet."},
        **responses_for(
            SessionNotFoundError,
            ExtractionLimitError,
            DisabledError,
            MemoryPausedError,
            MemoryDisabledError,
            UnknownModelError,
            ModelUnavailableError,
            EmbeddingUnavailableError,
            *IDEMPOTENCY_ERRORS,
        ),
    },
)
async def extract_session(
    session_id: OwnId,
    principal: ModelUserDep,
    service: ExtractionDep,
    key: IdempotencyKeyDep,
    response: Response,
    body: ExtractRequest | None = None,
) -> ExtractAnswer:
    """Read what is unread in a session now."""
    body = body or ExtractRequest()
    answer, response.status_code = await service.extract(principal, session_id, body, key=key)
    return answer


@router.get("/v1/extractions", responses=responses_for(InvalidCursorError))
async def list_extractions(
    query: Annotated[RunQuery, Query()], principal: ReaderDep, service: ExtractionDep
) -> Page[RunRead]:
    """List runs: which extractor read which messages, what it cost, what came of it."""
    return await service.runs(principal, query)


@router.get("/v1/extractions/{extraction_id}", responses=responses_for(RunNotFoundError))
async def get_extraction_run(
    extraction_id: Id, principal: ReaderDep, service: ExtractionDep
) -> RunRead:
    """One run; `GET /v1/memories/decisions?extraction_id=…` tells its verdicts."""
    return await service.run(principal, extraction_id)
