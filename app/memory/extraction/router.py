"""/v1/memories (saving), /v1/sessions/{session_id}/extract and /v1/extractions"""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.conversation.sessions.errors import SessionMismatchError, SessionNotFoundError
from app.errors import DisabledError, IdTakenError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.projects.errors import ProjectNotFoundError, ReadOnlyMemberError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.users.errors import UserNotFoundError, UserRequiredError
from app.language.llm.errors import (
    EmbeddingUnavailableError,
    ModelUnavailableError,
    UnknownEmbedderError,
    UnknownModelError,
)
from app.memory.extraction.errors import (
    ExtractionLimitError,
    NotInferredError,
    QuotaExhaustedError,
    RunNotFoundError,
)
from app.memory.extraction.inferring import InferringService
from app.memory.extraction.schemas import (
    AddQuery,
    ExtractAnswer,
    ExtractRequest,
    JobAccepted,
    RunQuery,
    RunRead,
)
from app.memory.extraction.service import ExtractionService
from app.memory.memories.errors import (
    DuplicateMemoryError,
    GateRejectedError,
    ScopeRequiresError,
    SharedByAllUsersError,
)
from app.memory.memories.saving import SavingService
from app.memory.memories.schemas import MemoryAdded, MemoryCreate, MemoryValidated
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.plugins.errors import ProcessorFailedError
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page
from app.platform.work.errors import MemoryDisabledError, MemoryPausedError

memories_router = APIRouter(
    prefix="/v1/memories", tags=["memories"], responses=responses_for(*KEY_ERRORS)
)
router = APIRouter(tags=["extraction"], responses=responses_for(*KEY_ERRORS))

PLACE_ERRORS = (
    UserRequiredError,
    ScopeRequiresError,
    SharedByAllUsersError,
    UserNotFoundError,
    AgentNotFoundError,
)
SETTLING_ERRORS = (
    SessionNotFoundError,
    SessionMismatchError,
    ProjectNotFoundError,
    ReadOnlyMemberError,
    IdTakenError,
    DisabledError,
    MemoryPausedError,
    MemoryDisabledError,
)
EMBEDDING_ERRORS = (UnknownEmbedderError, EmbeddingUnavailableError)
MODEL_ERRORS = (UnknownModelError, ModelUnavailableError)


InferringDep = Annotated[InferringService, provided(InferringService)]
SavingDep = Annotated[SavingService, provided(SavingService)]
ExtractionDep = Annotated[ExtractionService, provided(ExtractionService)]


@memories_router.post(
    "",
    status_code=201,
    response_model=MemoryAdded,
    responses={
        200: {"model": MemoryAdded, "description": "Nothing new was stored, or a list was saved."},
        202: {"model": JobAccepted, "description": "With async: the work is in the queue."},
        **responses_for(
            *PLACE_ERRORS,
            *SETTLING_ERRORS,
            GateRejectedError,
            DuplicateMemoryError,
            NotInferredError,
            QuotaExhaustedError,
            *EMBEDDING_ERRORS,
            *MODEL_ERRORS,
            ProcessorFailedError,
            *IDEMPOTENCY_ERRORS,
        ),
    },
)
async def add_memories(
    body: MemoryCreate,
    query: Annotated[AddQuery, Query()],
    principal: WriterDep,
    service: InferringDep,
    key: IdempotencyKeyDep,
    response: Response,
) -> MemoryAdded | Response:
    """Remember what messages say; with `infer` false the messages as they stand."""
    if query.async_:
        accepted = await service.order(principal, body, key=key)
        return Response(accepted.model_dump_json(), 202, media_type="application/json")
    added, response.status_code = await service.add(principal, body, key=key)
    return added


@memories_router.post(
    "/validate",
    responses=responses_for(
        *PLACE_ERRORS, *SETTLING_ERRORS, *EMBEDDING_ERRORS, ProcessorFailedError
    ),
)
async def validate_memories(
    body: MemoryCreate, principal: ReaderDep, service: SavingDep
) -> MemoryValidated:
    """Ask what saving as it stands would do, its refusals included; nothing is stored."""
    return await service.validate(principal, body)


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
            *IDEMPOTENCY_ERRORS,
        ),
    },
)
async def extract_session(
    session_id: Id,
    principal: WriterDep,
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


@router.get("/v1/extractions/{run_id}", responses=responses_for(RunNotFoundError))
async def get_extraction_run(run_id: Id, principal: ReaderDep, service: ExtractionDep) -> RunRead:
    """One run; `GET /v1/memories/decisions?run_id=…` tells its verdicts."""
    return await service.run(principal, run_id)
