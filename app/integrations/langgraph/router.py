"""/v1/sessions/{session_id}/saver and /v1/saver"""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.conversation.sessions.repository import Participants
from app.conversation.sessions.schemas import (
    SessionEndedError,
    SessionMismatchError,
    SessionNotFoundError,
)
from app.errors import DisabledError, IdTakenError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.users.schemas import UserNotFoundError, UserRequiredError
from app.integrations.langgraph.pages import (
    InvalidChunkError,
    InvalidSaverFilterError,
    SaverCheckpointNotFoundError,
    SaverContentMissingError,
    SaverStepTooLargeError,
)
from app.integrations.langgraph.schemas import (
    AgentId,
    Namespace,
    SaverContentDone,
    SaverContentPut,
    SaverContentQuery,
    SaverContentRead,
    SaverCopied,
    SaverCopy,
    SaverPage,
    SaverPrune,
    SaverPut,
    SaverPutDone,
    SaverQuery,
    SaverRemoved,
    SaverRunsDelete,
    SaverWritesPut,
    UserId,
)
from app.integrations.langgraph.service import SaverService
from app.integrations.langgraph.thread_service import SaverThreadService
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id, OwnId
from app.platform.values.pagination import InvalidCursorError
from app.platform.work.unit import MemoryDisabledError

router = APIRouter(prefix="/v1", tags=["checkpoints"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[SaverService, provided(SaverService)]
ThreadsDep = Annotated[SaverThreadService, provided(SaverThreadService)]
NamespaceQuery = Annotated[Namespace, Query()]


@router.put(
    "/sessions/{session_id}/saver/checkpoints/{checkpoint_id}",
    responses=responses_for(
        SessionNotFoundError,
        SessionMismatchError,
        SessionEndedError,
        SaverCheckpointNotFoundError,
        SaverContentMissingError,
        SaverStepTooLargeError,
        InvalidChunkError,
        UserRequiredError,
        UserNotFoundError,
        AgentNotFoundError,
        IdTakenError,
        DisabledError,
        MemoryDisabledError,
    ),
)
async def put_saver_checkpoint(
    session_id: OwnId,
    checkpoint_id: Id,
    body: SaverPut,
    principal: WriterDep,
    service: ServiceDep,
    namespace: NamespaceQuery = "",
) -> SaverPutDone:
    """Store a LangGraph checkpoint; one without a parent opens the session on first use."""
    return await service.put(principal, session_id, namespace, checkpoint_id, body)


@router.put(
    "/sessions/{session_id}/saver/content",
    responses=responses_for(
        SessionNotFoundError,
        SessionMismatchError,
        SessionEndedError,
        SaverStepTooLargeError,
        InvalidChunkError,
        UserRequiredError,
        UserNotFoundError,
        AgentNotFoundError,
        IdTakenError,
        DisabledError,
        MemoryDisabledError,
    ),
)
async def put_saver_content(
    session_id: OwnId, body: SaverContentPut, principal: WriterDep, service: ServiceDep
) -> SaverContentDone:
    """Store chunks ahead of the LangGraph checkpoint or writes that will have them.

    For what does not fit into one request. What nothing has within an hour is deleted.
    """
    return await service.put_content(principal, session_id, body)


@router.post(
    "/sessions/{session_id}/saver/content/read",
    responses=responses_for(SessionNotFoundError, SessionMismatchError),
)
async def read_saver_content(
    session_id: OwnId, body: SaverContentQuery, principal: ReaderDep, service: ServiceDep
) -> SaverContentRead:
    """Chunks that a page of LangGraph checkpoints had no room for; some megabytes at a time."""
    return await service.read_content(principal, session_id, body)


@router.put(
    "/sessions/{session_id}/saver/checkpoints/{checkpoint_id}/writes",
    responses=responses_for(
        SessionNotFoundError,
        SessionMismatchError,
        SessionEndedError,
        SaverCheckpointNotFoundError,
        SaverContentMissingError,
        SaverStepTooLargeError,
        InvalidChunkError,
        DisabledError,
        MemoryDisabledError,
    ),
)
async def put_saver_writes(
    session_id: OwnId,
    checkpoint_id: Id,
    body: SaverWritesPut,
    principal: WriterDep,
    service: ServiceDep,
    namespace: NamespaceQuery = "",
) -> SaverPutDone:
    """Store what a task has written while its step goes on."""
    return await service.put_writes(principal, session_id, namespace, checkpoint_id, body)


@router.get(
    "/sessions/{session_id}/saver/checkpoints",
    response_model=SaverPage,
    responses=responses_for(
        SessionNotFoundError, SessionMismatchError, InvalidSaverFilterError, InvalidCursorError
    ),
)
async def list_saver_checkpoints(
    session_id: OwnId,
    query: Annotated[SaverQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Response:
    """LangGraph checkpoints of a session with values and writes, newest first.

    A page ends before `limit` where it would hold more than some megabytes.
    """
    return Response(
        await service.list_checkpoints(principal, session_id, query), media_type="application/json"
    )


@router.get(
    "/saver/checkpoints",
    response_model=SaverPage,
    responses=responses_for(InvalidSaverFilterError, InvalidCursorError),
)
async def list_all_saver_checkpoints(
    query: Annotated[SaverQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Response:
    """LangGraph checkpoints of every session, newest first, in pages as those of one."""
    return Response(
        await service.list_checkpoints(principal, None, query), media_type="application/json"
    )


@router.delete(
    "/sessions/{session_id}/saver",
    status_code=204,
    responses=responses_for(SessionNotFoundError, SessionMismatchError),
)
async def delete_saver_thread(
    session_id: OwnId,
    principal: WriterDep,
    service: ThreadsDep,
    user_id: Annotated[UserId | None, Query()] = None,
    agent_id: Annotated[AgentId | None, Query()] = None,
) -> None:
    """Delete all LangGraph checkpoints of a session; it and its messages stay."""
    await service.delete(principal, session_id, Participants(user_id, agent_id))


@router.post(
    "/sessions/{session_id}/saver/copy",
    responses=responses_for(
        SessionNotFoundError,
        SessionMismatchError,
        SessionEndedError,
        IdTakenError,
        DisabledError,
        MemoryDisabledError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def copy_saver_thread(
    session_id: OwnId,
    body: SaverCopy,
    principal: WriterDep,
    service: ThreadsDep,
    key: IdempotencyKeyDep,
) -> SaverCopied:
    """Copy all LangGraph checkpoints to another session of the same user and agent."""
    return await service.copy(principal, session_id, body, key=key)


@router.post("/saver/prune", responses=responses_for(SessionMismatchError, *IDEMPOTENCY_ERRORS))
async def prune_saver_threads(
    body: SaverPrune, principal: WriterDep, service: ThreadsDep, key: IdempotencyKeyDep
) -> SaverRemoved:
    """Delete the older LangGraph checkpoints of sessions, or all of them."""
    return await service.prune(principal, body, key=key)


@router.post("/saver/runs/delete", responses=responses_for(*IDEMPOTENCY_ERRORS))
async def delete_saver_runs(
    body: SaverRunsDelete, principal: WriterDep, service: ThreadsDep, key: IdempotencyKeyDep
) -> SaverRemoved:
    """Delete the LangGraph checkpoints that runs have put."""
    return await service.delete_runs(principal, body, key=key)
