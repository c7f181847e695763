"""/v1/sessions and the working state of one."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.conversation.sessions.schemas import (
    SessionCreate,
    SessionEnded,
    SessionEndedError,
    SessionNotFoundError,
    SessionPatch,
    SessionQuery,
    SessionRead,
    SnapshotNotFoundError,
    SnapshotRead,
    SnapshotShown,
    StatePatch,
    StateRead,
    StateReplacement,
    StateTooLargeError,
)
from app.conversation.sessions.service import SessionService, StateService
from app.errors import (
    ConfirmationRequiredError,
    DisabledError,
    IdTakenError,
    VersionConflictError,
    VersionRequiredError,
)
from app.identity.agents.errors import AgentNotFoundError
from app.identity.projects.schemas import ProjectNotFoundError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.tenants.schemas import Eraser, ErasureQuery, Receipt
from app.identity.users.schemas import UserNotFoundError, UserRequiredError
from app.platform.http.dependencies import RequiredVersionDep, VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id, OwnId
from app.platform.values.pagination import InvalidCursorError, Page, PageQuery
from app.platform.work.unit import MemoryDisabledError

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
async def get_session(session_id: OwnId, principal: ReaderDep, service: ServiceDep) -> SessionRead:
    """Get one session."""
    return await service.get(principal, session_id)


@router.patch(
    "/{session_id}",
    responses=responses_for(SessionNotFoundError, ProjectNotFoundError, VersionConflictError),
)
async def update_session(
    session_id: OwnId,
    body: SessionPatch,
    principal: WriterDep,
    service: ServiceDep,
    version: VersionDep,
) -> SessionRead:
    """Change a session; omitted fields stay."""
    return await service.patch(principal, session_id, body, expected=version)


@router.post(
    "/{session_id}/end", responses=responses_for(SessionNotFoundError, *IDEMPOTENCY_ERRORS)
)
async def end_session(
    session_id: OwnId, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> SessionEnded:
    """End a session: it can be read, and nothing can be appended."""
    return await service.end(principal, session_id, key=key)


@router.post(
    "/{session_id}/reopen", responses=responses_for(SessionNotFoundError, *IDEMPOTENCY_ERRORS)
)
async def reopen_session(
    session_id: OwnId, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> SessionRead:
    """Let an ended session go on."""
    return await service.reopen(principal, session_id, key=key)


@router.delete(
    "/{session_id}",
    responses=responses_for(SessionNotFoundError, ConfirmationRequiredError),
)
async def delete_session(
    session_id: OwnId,
    query: Annotated[ErasureQuery, Query()],
    principal: WriterDep,
    erasure: ErasureDep,
) -> Receipt:
    """Delete a session with its messages and its own memories, for good."""
    return await erasure.delete(principal, "session", session_id, query)


state_router = APIRouter(
    prefix="/v1/sessions/{session_id}/state",
    tags=["sessions"],
    responses=responses_for(*KEY_ERRORS),
)

WRITE_ERRORS = (SessionNotFoundError, SessionEndedError, DisabledError, MemoryDisabledError)


StateDep = Annotated[StateService, provided(StateService)]


@state_router.get("", responses=responses_for(SessionNotFoundError))
async def get_session_state(
    session_id: OwnId, principal: ReaderDep, service: StateDep
) -> StateRead:
    """The working state of a session: small data of an agent at work, dropped at its end."""
    return await service.get(principal, session_id)


@state_router.put(
    "", responses=responses_for(*WRITE_ERRORS, VersionConflictError, VersionRequiredError)
)
async def put_session_state(
    session_id: OwnId,
    body: StateReplacement,
    principal: WriterDep,
    service: StateDep,
    version: RequiredVersionDep,
) -> StateRead:
    """Replace the working state; `If-Match: 0` where none was written yet."""
    return await service.put(principal, session_id, body.root, expected=version)


@state_router.patch(
    "",
    responses=responses_for(
        *WRITE_ERRORS, VersionConflictError, VersionRequiredError, StateTooLargeError
    ),
)
async def update_session_state(
    session_id: OwnId,
    body: StatePatch,
    principal: WriterDep,
    service: StateDep,
    version: RequiredVersionDep,
) -> StateRead:
    """Change the working state by a merge patch; `If-Match: 0` where none was written yet."""
    return await service.patch(principal, session_id, body.root, expected=version)


@state_router.post(
    "/snapshots", status_code=201, responses=responses_for(*WRITE_ERRORS, *IDEMPOTENCY_ERRORS)
)
async def add_snapshot(
    session_id: OwnId, principal: WriterDep, service: StateDep, key: IdempotencyKeyDep
) -> SnapshotRead:
    """Keep a copy of the working state."""
    return await service.snapshot(principal, session_id, key=key)


@state_router.get("/snapshots", responses=responses_for(SessionNotFoundError, InvalidCursorError))
async def list_snapshots(
    session_id: OwnId,
    query: Annotated[PageQuery, Query()],
    principal: ReaderDep,
    service: StateDep,
) -> Page[SnapshotRead]:
    """List copies of the working state and why they were made, newest first."""
    return await service.list_snapshots(principal, session_id, query)


@state_router.get(
    "/snapshots/{snapshot_id}",
    responses=responses_for(SessionNotFoundError, SnapshotNotFoundError),
)
async def get_snapshot(
    session_id: OwnId, snapshot_id: Id, principal: ReaderDep, service: StateDep
) -> SnapshotShown:
    """One copy of the working state."""
    return await service.get_snapshot(principal, session_id, snapshot_id)


@state_router.post(
    "/snapshots/{snapshot_id}/restore",
    responses=responses_for(
        *WRITE_ERRORS, SnapshotNotFoundError, VersionConflictError, *IDEMPOTENCY_ERRORS
    ),
)
async def restore_snapshot(
    session_id: OwnId,
    snapshot_id: Id,
    principal: WriterDep,
    service: StateDep,
    version: VersionDep,
    key: IdempotencyKeyDep,
) -> StateRead:
    """Go back to a copy of the working state; a copy of the present one is kept."""
    return await service.restore(principal, session_id, snapshot_id, expected=version, key=key)
