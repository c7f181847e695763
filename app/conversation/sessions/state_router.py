"""/v1/sessions/{session_id}/state"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.conversation.sessions.errors import (
    SessionEndedError,
    SessionNotFoundError,
    SnapshotNotFoundError,
    StateTooLargeError,
)
from app.conversation.sessions.state_schemas import (
    SnapshotRead,
    SnapshotShown,
    StatePatch,
    StateRead,
    StateReplacement,
)
from app.conversation.sessions.state_service import StateService
from app.errors import DisabledError, VersionConflictError, VersionRequiredError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.platform.http.dependencies import RequiredVersionDep, VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page, PageQuery
from app.platform.work.errors import MemoryDisabledError

router = APIRouter(
    prefix="/v1/sessions/{session_id}/state",
    tags=["sessions"],
    responses=responses_for(*KEY_ERRORS),
)

WRITE_ERRORS = (SessionNotFoundError, SessionEndedError, DisabledError, MemoryDisabledError)


ServiceDep = Annotated[StateService, provided(StateService)]


@router.get("", responses=responses_for(SessionNotFoundError))
async def get_session_state(session_id: Id, principal: ReaderDep, service: ServiceDep) -> StateRead:
    """The working state of a session: small data of an agent at work, dropped at its end."""
    return await service.get(principal, session_id)


@router.put("", responses=responses_for(*WRITE_ERRORS, VersionConflictError, VersionRequiredError))
async def put_session_state(
    session_id: Id,
    body: StateReplacement,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
) -> StateRead:
    """Replace the working state; `If-Match: 0` where none was written yet."""
    return await service.put(principal, session_id, body.root, expected=version)


@router.patch(
    "",
    responses=responses_for(
        *WRITE_ERRORS, VersionConflictError, VersionRequiredError, StateTooLargeError
    ),
)
async def update_session_state(
    session_id: Id,
    body: StatePatch,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
) -> StateRead:
    """Change the working state by a merge patch; `If-Match: 0` where none was written yet."""
    return await service.patch(principal, session_id, body.root, expected=version)


@router.post(
    "/snapshots", status_code=201, responses=responses_for(*WRITE_ERRORS, *IDEMPOTENCY_ERRORS)
)
async def add_snapshot(
    session_id: Id, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> SnapshotRead:
    """Keep a copy of the working state."""
    return await service.snapshot(principal, session_id, key=key)


@router.get("/snapshots", responses=responses_for(SessionNotFoundError, InvalidCursorError))
async def list_snapshots(
    session_id: Id,
    query: Annotated[PageQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[SnapshotRead]:
    """List copies of the working state and why they were made, newest first."""
    return await service.list_snapshots(principal, session_id, query)


@router.get(
    "/snapshots/{snapshot_id}",
    responses=responses_for(SessionNotFoundError, SnapshotNotFoundError),
)
async def get_snapshot(
    session_id: Id, snapshot_id: Id, principal: ReaderDep, service: ServiceDep
) -> SnapshotShown:
    """One copy of the working state."""
    return await service.get_snapshot(principal, session_id, snapshot_id)


@router.post(
    "/snapshots/{snapshot_id}/restore",
    responses=responses_for(
        *WRITE_ERRORS, SnapshotNotFoundError, VersionConflictError, *IDEMPOTENCY_ERRORS
    ),
)
async def restore_snapshot(
    session_id: Id,
    snapshot_id: Id,
    principal: WriterDep,
    service: ServiceDep,
    version: VersionDep,
    key: IdempotencyKeyDep,
) -> StateRead:
    """Go back to a copy of the working state; a copy of the present one is kept."""
    return await service.restore(principal, session_id, snapshot_id, expected=version, key=key)
