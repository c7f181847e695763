"""/v1/sessions"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.conversation.sessions.errors import SessionNotFoundError
from app.conversation.sessions.schemas import (
    SessionCreate,
    SessionEnded,
    SessionPatch,
    SessionQuery,
    SessionRead,
)
from app.conversation.sessions.service import SessionService
from app.errors import ConfirmationRequiredError, DisabledError, IdTakenError, VersionConflictError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.erasure import Eraser, ErasureQuery, Receipt
from app.identity.projects.errors import ProjectNotFoundError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.users.errors import UserNotFoundError, UserRequiredError
from app.platform.http.dependencies import VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[SessionService, provided(SessionService)]
ErasureDep = Annotated[Eraser, provided(Eraser)]


@router.post(
    "",
    status_code=201,
    responses=responses_for(
        UserNotFoundError,
        UserRequiredError,
        AgentNotFoundError,
        ProjectNotFoundError,
        IdTakenError,
        DisabledError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def add_session(
    body: SessionCreate, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> SessionRead:
    """Open a session."""
    return await service.add(principal, body, key=key)


@router.get("", responses=responses_for(InvalidCursorError))
async def list_sessions(
    query: Annotated[SessionQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[SessionRead]:
    """List sessions, newest first."""
    return await service.list_sessions(principal, query)


@router.get("/{session_id}", responses=responses_for(SessionNotFoundError))
async def get_session(session_id: Id, principal: ReaderDep, service: ServiceDep) -> SessionRead:
    """One session."""
    return await service.get(principal, session_id)


@router.patch(
    "/{session_id}",
    responses=responses_for(SessionNotFoundError, ProjectNotFoundError, VersionConflictError),
)
async def update_session(
    session_id: Id,
    body: SessionPatch,
    principal: WriterDep,
    service: ServiceDep,
    version: VersionDep,
) -> SessionRead:
    """Change a session; what is left out stays."""
    return await service.patch(principal, session_id, body, expected=version)


@router.post(
    "/{session_id}/end", responses=responses_for(SessionNotFoundError, *IDEMPOTENCY_ERRORS)
)
async def end_session(
    session_id: Id, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> SessionEnded:
    """End a session: it can be read, and nothing can be appended."""
    return await service.end(principal, session_id, key=key)


@router.post(
    "/{session_id}/reopen", responses=responses_for(SessionNotFoundError, *IDEMPOTENCY_ERRORS)
)
async def reopen_session(
    session_id: Id, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> SessionRead:
    """Let an ended session go on."""
    return await service.reopen(principal, session_id, key=key)


@router.delete(
    "/{session_id}",
    responses=responses_for(SessionNotFoundError, ConfirmationRequiredError),
)
async def delete_session(
    session_id: Id,
    query: Annotated[ErasureQuery, Query()],
    principal: WriterDep,
    erasure: ErasureDep,
) -> Receipt:
    """Delete a session with its messages and its own memories, for good."""
    return await erasure.delete(principal, "session", session_id, query)
