"""/v1/sessions/{session_id}/checkpoints, /fork and /approvals"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.conversation.messages.errors import MessageNotFoundError
from app.conversation.sessions.schemas import SessionEndedError, SessionNotFoundError
from app.errors import DisabledError, IdTakenError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id, OwnId
from app.platform.values.pagination import InvalidCursorError, Page
from app.platform.work.unit import MemoryDisabledError
from app.prompting.checkpoints.errors import (
    ApprovalDecidedError,
    ApprovalNotFoundError,
    CallAnsweredError,
    CheckpointNotFoundError,
    CheckpointParentNotFoundError,
    ForkPointError,
    ForkTooLargeError,
)
from app.prompting.checkpoints.fork_service import ForkService
from app.prompting.checkpoints.schemas import (
    ApprovalDecision,
    ApprovalQuery,
    ApprovalRead,
    CheckpointCreate,
    CheckpointQuery,
    CheckpointRead,
    CheckpointRestored,
    CheckpointShown,
    SessionFork,
    SessionForked,
    ToolCallId,
)
from app.prompting.checkpoints.service import ApprovalService, CheckpointService

router = APIRouter(
    prefix="/v1/sessions/{session_id}",
    tags=["checkpoints"],
    responses=responses_for(*KEY_ERRORS),
)

WRITE_ERRORS = (
    SessionNotFoundError,
    SessionEndedError,
    DisabledError,
    MemoryDisabledError,
    *IDEMPOTENCY_ERRORS,
)


ServiceDep = Annotated[CheckpointService, provided(CheckpointService)]
ForksDep = Annotated[ForkService, provided(ForkService)]
ApprovalsDep = Annotated[ApprovalService, provided(ApprovalService)]


@router.post(
    "/checkpoints",
    status_code=201,
    responses=responses_for(*WRITE_ERRORS, CheckpointParentNotFoundError),
)
async def add_checkpoint(
    session_id: OwnId,
    body: CheckpointCreate,
    principal: WriterDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> CheckpointRead:
    """Keep a session as it is: window, summaries, working state, and what the caller adds."""
    return await service.add(principal, session_id, body, key=key)


@router.get(
    "/checkpoints",
    responses=responses_for(SessionNotFoundError, CheckpointNotFoundError, InvalidCursorError),
)
async def list_checkpoints(
    session_id: OwnId,
    query: Annotated[CheckpointQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[CheckpointRead]:
    """List checkpoints without their contents, newest first."""
    return await service.list_checkpoints(principal, session_id, query)


@router.get(
    "/checkpoints/{checkpoint_id}",
    responses=responses_for(SessionNotFoundError, CheckpointNotFoundError),
)
async def get_checkpoint(
    session_id: OwnId, checkpoint_id: Id, principal: ReaderDep, service: ServiceDep
) -> CheckpointShown:
    """One checkpoint with all it holds, archived or not."""
    return await service.get(principal, session_id, checkpoint_id)


@router.delete(
    "/checkpoints/{checkpoint_id}",
    status_code=204,
    responses=responses_for(SessionNotFoundError, CheckpointNotFoundError),
)
async def delete_checkpoint(
    session_id: OwnId, checkpoint_id: Id, principal: WriterDep, service: ServiceDep
) -> None:
    """Delete a checkpoint for good; the session stays as it is."""
    await service.delete(principal, session_id, checkpoint_id)


@router.post(
    "/checkpoints/{checkpoint_id}/restore",
    responses=responses_for(*WRITE_ERRORS, CheckpointNotFoundError),
)
async def restore_checkpoint(
    session_id: OwnId,
    checkpoint_id: Id,
    principal: WriterDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> CheckpointRestored:
    """Restore a session from a checkpoint; later messages stay stored, outside of the window."""
    return await service.restore(principal, session_id, checkpoint_id, key=key)


@router.post(
    "/fork",
    status_code=201,
    responses=responses_for(
        SessionNotFoundError,
        MessageNotFoundError,
        CheckpointNotFoundError,
        ForkPointError,
        ForkTooLargeError,
        IdTakenError,
        DisabledError,
        MemoryDisabledError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def fork_session(
    session_id: OwnId,
    principal: WriterDep,
    service: ForksDep,
    key: IdempotencyKeyDep,
    body: SessionFork | None = None,
) -> SessionForked:
    """Open a new session that goes on from a place in this one, which stays as it is."""
    return await service.fork(principal, session_id, body or SessionFork(), key=key)


@router.get("/approvals", responses=responses_for(SessionNotFoundError, InvalidCursorError))
async def list_approvals(
    session_id: OwnId,
    query: Annotated[ApprovalQuery, Query()],
    principal: ReaderDep,
    service: ApprovalsDep,
) -> Page[ApprovalRead]:
    """List calls of tools that a human is asked about, newest first."""
    return await service.list_approvals(principal, session_id, query)


# An id of a call is its provider's, and may have a slash in it.
@router.get(
    "/approvals/{tool_call_id:path}",
    responses=responses_for(SessionNotFoundError, ApprovalNotFoundError),
)
async def get_approval(
    session_id: OwnId, tool_call_id: ToolCallId, principal: ReaderDep, service: ApprovalsDep
) -> ApprovalRead:
    """What was decided about a call, or that it waits."""
    return await service.get(principal, session_id, tool_call_id)


@router.post(
    "/approvals/{tool_call_id:path}",
    responses=responses_for(
        *WRITE_ERRORS, ApprovalNotFoundError, ApprovalDecidedError, CallAnsweredError
    ),
)
async def decide_approval(
    session_id: OwnId,
    tool_call_id: ToolCallId,
    body: ApprovalDecision,
    principal: WriterDep,
    service: ApprovalsDep,
    key: IdempotencyKeyDep,
) -> ApprovalRead:
    """Decide about a call that waits; the caller then runs it, or answers it by a tool message."""
    return await service.decide(principal, session_id, tool_call_id, body, key=key)
