"""/v1/memories and /v1/projects/{project_id}/memories"""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic_core import to_json

from app.conversation.messages.errors import OtherSearchError
from app.conversation.sessions.schemas import SessionMismatchError, SessionNotFoundError
from app.errors import (
    ConfirmationRequiredError,
    DisabledError,
    IdTakenError,
    SelectorRequiredError,
    VersionConflictError,
)
from app.identity.agents.errors import AgentNotFoundError
from app.identity.projects.schemas import (
    InsufficientRoleError,
    ProjectNotFoundError,
    ReadOnlyMemberError,
)
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ModelCountDep,
    ReaderDep,
    WriterDep,
)
from app.identity.usage.quota import QuotaExhaustedError
from app.identity.users.schemas import UserNotFoundError, UserRequiredError
from app.language.llm.errors import (
    EmbeddingUnavailableError,
    ModelUnavailableError,
    UnknownEmbedderError,
    UnknownModelError,
)
from app.memory.memories.edit_service import EditService
from app.memory.memories.errors import (
    DuplicateMemoryError,
    GateRejectedError,
    HistoryNotFoundError,
    MemoryNotFoundError,
    NotChangeableError,
    NotInferredError,
    NotYourMemoryError,
    ScopeRequiresError,
    SharedByAllUsersError,
)
from app.memory.memories.filters import InvalidFilterError
from app.memory.memories.schemas import (
    AddAccepted,
    AddQuery,
    MemoryAdded,
    MemoryCreate,
    MemoryPatch,
    MemoryRead,
    MemoryRestore,
    MemoryRestored,
    MemorySupersede,
    MemoryValidated,
    Outcome,
)
from app.memory.memories.search_schemas import (
    BulkDelete,
    BulkDeleteQuery,
    DecisionQuery,
    DecisionRead,
    DeletionScheduled,
    HistoryRead,
    MemoriesDeleted,
    MemoryDeleteQuery,
    MemoryQuery,
    MemoryStats,
    ProjectItemQuery,
    ProjectItemRead,
    SearchAnswer,
    SearchRequest,
    StatsQuery,
)
from app.memory.memories.search_service import SearchService
from app.memory.memories.service import MemoryCreation, MemoryService
from app.platform.http.dependencies import VersionDep, provided
from app.platform.http.hot_route import HotRoute
from app.platform.http.problems import responses_for
from app.platform.plugins.runner import ProcessorFailedError
from app.platform.values.fields import Id, OwnId
from app.platform.values.pagination import InvalidCursorError, Page, PageQuery
from app.platform.work.unit import MemoryDisabledError, MemoryPausedError

router = APIRouter(prefix="/v1/memories", tags=["memories"], responses=responses_for(*KEY_ERRORS))

EMBEDDING_ERRORS = (UnknownEmbedderError, EmbeddingUnavailableError)
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
MODEL_ERRORS = (UnknownModelError, ModelUnavailableError)
SCHEDULED: dict[int | str, dict[str, Any]] = {
    202: {
        "model": DeletionScheduled,
        "description": "More than 10,000 were selected: a job deletes them.",
    }
}


EditingDep = Annotated[EditService, provided(EditService)]
SearchDep = Annotated[SearchService, provided(SearchService)]
CreationDep = Annotated[MemoryCreation, provided(MemoryCreation)]
ServiceDep = Annotated[MemoryService, provided(MemoryService)]


async def add_memory(
    body: MemoryCreate,
    query: Annotated[AddQuery, Query()],
    principal: WriterDep,
    service: CreationDep,
    count_model: ModelCountDep,
    key: IdempotencyKeyDep,
) -> Response:
    """Remember what messages say; with `infer` false the messages as they stand."""
    if body.infer:
        # A write like any other, and besides it asks a model.
        count_model()
    if query.async_:
        accepted = await service.order(principal, body, key=key)
        return Response(accepted.model_dump_json(), 202, media_type="application/json")
    added, status = await service.add(principal, body, key=key)
    # Written out at once, as hits of a search are: a hundred memories would be validated again.
    return Response(added.model_dump_json(), status, media_type="application/json")


router.add_api_route(
    "",
    add_memory,
    methods=["POST"],
    status_code=201,
    response_model=MemoryAdded,
    responses={
        200: {"model": MemoryAdded, "description": "Nothing new was stored, or a list was saved."},
        202: {"model": AddAccepted, "description": "With async: the work is in the queue."},
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
    route_class_override=HotRoute,
)


@router.post(
    "/validate",
    responses=responses_for(
        *PLACE_ERRORS, *SETTLING_ERRORS, *EMBEDDING_ERRORS, ProcessorFailedError
    ),
)
async def validate_memories(
    body: MemoryCreate, principal: ReaderDep, service: CreationDep
) -> MemoryValidated:
    """Ask what saving it would do, its refusals included; nothing is stored."""
    return await service.validate(principal, body)


async def search_memories(
    body: SearchRequest, principal: ReaderDep, service: SearchDep
) -> Response:
    """Find memories by meaning, best first."""
    # Written out at once: validating 30 fields of 100 hits again costs more than the search.
    # The published schema is held against it by the tests.
    return Response(to_json(await service.search(principal, body)), media_type="application/json")


router.add_api_route(
    "/search",
    search_memories,
    methods=["POST"],
    response_model=SearchAnswer,
    responses=responses_for(
        SelectorRequiredError,
        OtherSearchError,
        UserNotFoundError,
        AgentNotFoundError,
        ProjectNotFoundError,
        InvalidFilterError,
        EmbeddingUnavailableError,
        ProcessorFailedError,
    ),
    route_class_override=HotRoute,
)


@router.get("", responses=responses_for(InvalidCursorError, InvalidFilterError))
async def list_memories(
    query: Annotated[MemoryQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[MemoryRead]:
    """List memories by creation."""
    return await service.list_memories(principal, query)


@router.get("/stats")
async def get_memory_stats(
    query: Annotated[StatsQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> MemoryStats:
    """Count memories and the gate's verdicts."""
    return await service.stats(principal, query)


@router.get("/decisions", responses=responses_for(InvalidCursorError))
async def list_decisions(
    query: Annotated[DecisionQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[DecisionRead]:
    """List the gate's verdicts, newest first."""
    return await service.decisions(principal, query)


@router.post(
    "/delete",
    responses={
        **SCHEDULED,
        **responses_for(
            SelectorRequiredError,
            ConfirmationRequiredError,
            UserNotFoundError,
            ReadOnlyMemberError,
            InvalidFilterError,
            *IDEMPOTENCY_ERRORS,
        ),
    },
)
async def delete_memories_by_filter(
    body: BulkDelete,
    principal: WriterDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
    response: Response,
) -> MemoriesDeleted | DeletionScheduled:
    """Delete what a filter selects, or count it first with `dry_run`."""
    answer = await service.delete_many(principal, body, location="body", key=key)
    return _with_status(answer, response)


@router.delete(
    "",
    responses={
        **SCHEDULED,
        **responses_for(
            SelectorRequiredError,
            ConfirmationRequiredError,
            UserNotFoundError,
            ReadOnlyMemberError,
        ),
    },
)
async def delete_memories(
    query: Annotated[BulkDeleteQuery, Query()],
    principal: WriterDep,
    service: ServiceDep,
    response: Response,
) -> MemoriesDeleted | DeletionScheduled:
    """Delete a user's, an agent's, a session's or a project's memories."""
    answer = await service.delete_many(principal, query, location="query")
    return _with_status(answer, response)


def _with_status(
    answer: MemoriesDeleted | DeletionScheduled, response: Response
) -> MemoriesDeleted | DeletionScheduled:
    if isinstance(answer, DeletionScheduled):
        response.status_code = 202
    return answer


@router.get("/{memory_id}", responses=responses_for(MemoryNotFoundError))
async def get_memory(memory_id: Id, principal: ReaderDep, service: ServiceDep) -> MemoryRead:
    """One memory."""
    return await service.get(principal, memory_id)


@router.patch(
    "/{memory_id}",
    responses=responses_for(
        MemoryNotFoundError,
        NotYourMemoryError,
        ReadOnlyMemberError,
        NotChangeableError,
        VersionConflictError,
        GateRejectedError,
        DuplicateMemoryError,
        DisabledError,
        MemoryPausedError,
        MemoryDisabledError,
        ProcessorFailedError,
        *EMBEDDING_ERRORS,
    ),
)
async def update_memory(
    memory_id: Id,
    body: MemoryPatch,
    principal: WriterDep,
    service: EditingDep,
    version: VersionDep,
) -> MemoryRead:
    """Change a memory; a new content is embedded again."""
    return await service.patch(principal, memory_id, body, expected=version)


@router.post(
    "/{memory_id}/supersede",
    status_code=201,
    responses=responses_for(
        MemoryNotFoundError,
        NotYourMemoryError,
        ReadOnlyMemberError,
        NotChangeableError,
        GateRejectedError,
        DuplicateMemoryError,
        DisabledError,
        MemoryPausedError,
        MemoryDisabledError,
        ProcessorFailedError,
        *EMBEDDING_ERRORS,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def supersede_memory(
    memory_id: Id,
    body: MemorySupersede,
    principal: WriterDep,
    service: EditingDep,
    key: IdempotencyKeyDep,
) -> Outcome:
    """Put a newer statement in its place; the old one keeps its text and ends now."""
    return await service.supersede(principal, memory_id, body, key=key)


@router.post(
    "/{memory_id}/restore",
    responses=responses_for(
        MemoryNotFoundError,
        HistoryNotFoundError,
        NotYourMemoryError,
        ReadOnlyMemberError,
        VersionConflictError,
        GateRejectedError,
        DuplicateMemoryError,
        DisabledError,
        MemoryPausedError,
        MemoryDisabledError,
        *EMBEDDING_ERRORS,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def restore_memory(
    memory_id: Id,
    body: MemoryRestore,
    principal: WriterDep,
    service: EditingDep,
    version: VersionDep,
    key: IdempotencyKeyDep,
) -> MemoryRestored:
    """Make a memory what it was after an entry of its history; the entry before undoes one."""
    return await service.restore(principal, memory_id, body, expected=version, key=key)


@router.get(
    "/{memory_id}/history", responses=responses_for(MemoryNotFoundError, InvalidCursorError)
)
async def list_memory_history(
    memory_id: Id,
    query: Annotated[PageQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[HistoryRead]:
    """What happened to a memory, oldest first."""
    return await service.history(principal, memory_id, query)


@router.delete(
    "/{memory_id}",
    status_code=204,
    responses=responses_for(MemoryNotFoundError, NotYourMemoryError, ReadOnlyMemberError),
)
async def delete_memory(
    memory_id: Id,
    query: Annotated[MemoryDeleteQuery, Query()],
    principal: WriterDep,
    service: ServiceDep,
) -> None:
    """Delete a memory; `hard` removes it at once."""
    await service.delete(principal, memory_id, hard=query.hard)


project_router = APIRouter(
    prefix="/v1/projects/{project_id}/memories",
    tags=["projects"],
    responses=responses_for(*KEY_ERRORS),
)


@project_router.get(
    "", responses=responses_for(ProjectNotFoundError, InsufficientRoleError, InvalidCursorError)
)
async def list_project_memories(
    project_id: OwnId,
    query: Annotated[ProjectItemQuery, Query()],
    principal: ReaderDep,
    service: Annotated[MemoryService, provided(MemoryService)],
) -> Page[ProjectItemRead]:
    """List what a project holds, without what it says, newest first; for owners and admins."""
    return await service.list_project_items(principal, project_id, query)
