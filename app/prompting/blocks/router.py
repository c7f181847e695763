"""/v1/blocks, /v1/agents/{agent_id}/blocks, and POST /v1/agents, which may bring blocks along"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.conversation.sessions.schemas import SessionEndedError, SessionNotFoundError
from app.errors import (
    ConfirmationRequiredError,
    DisabledError,
    IdTakenError,
    VersionConflictError,
    VersionRequiredError,
)
from app.identity.agents.errors import (
    AgentNotFoundError,
    BlockLimitError,
    BlockNotFoundError,
    BlockOfSessionError,
    LabelTakenError,
    TemplateBoundError,
)
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.users.schemas import UserNotFoundError
from app.platform.http.dependencies import RequiredVersionDep, VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id, OwnId
from app.platform.values.pagination import ContentQuery, InvalidCursorError, Page, PageQuery
from app.platform.work.unit import MemoryDisabledError
from app.prompting.blocks.errors import (
    BlockNotAttachedError,
    BlockReadOnlyError,
    LineNumbersError,
    LineOutOfRangeError,
    NothingToRedoError,
    NothingToUndoError,
    TextNotFoundError,
    TextNotUniqueError,
)
from app.prompting.blocks.schemas import (
    BlockAppend,
    BlockCreate,
    BlockDeleted,
    BlockDeleteQuery,
    BlockHistoryRead,
    BlockInsert,
    BlockPatch,
    BlockQuery,
    BlockRead,
    BlockReplace,
    BlockRewrite,
)
from app.prompting.blocks.service import BlockService

router = APIRouter(prefix="/v1", tags=["blocks"], responses=responses_for(*KEY_ERRORS))

WRITE_ERRORS = (
    BlockNotFoundError,
    BlockLimitError,
    VersionConflictError,
    DisabledError,
    MemoryDisabledError,
)
EDIT_ERRORS = (BlockReadOnlyError, LineNumbersError, *WRITE_ERRORS, *IDEMPOTENCY_ERRORS)
MOVE_ERRORS = (
    AgentNotFoundError, BlockNotFoundError, TemplateBoundError, BlockOfSessionError,
)  # fmt: skip


ServiceDep = Annotated[BlockService, provided(BlockService)]


@router.get(
    "/agents/{agent_id}/blocks", responses=responses_for(AgentNotFoundError, InvalidCursorError)
)
async def list_agent_blocks(
    agent_id: OwnId,
    query: Annotated[ContentQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[BlockRead]:
    """List the blocks attached to an agent, hidden ones too, newest first."""
    return await service.attached(principal, agent_id, query)


@router.put(
    "/agents/{agent_id}/blocks/{block_id}", responses=responses_for(*MOVE_ERRORS, LabelTakenError)
)
async def attach_block(
    agent_id: OwnId, block_id: Id, principal: WriterDep, service: ServiceDep
) -> BlockRead:
    """Attach a block to an agent; several agents may share one."""
    return await service.attach(principal, agent_id, block_id)


@router.delete(
    "/agents/{agent_id}/blocks/{block_id}",
    status_code=204,
    responses=responses_for(*MOVE_ERRORS, BlockNotAttachedError),
)
async def detach_block(
    agent_id: OwnId, block_id: Id, principal: WriterDep, service: ServiceDep
) -> None:
    """Detach a block from an agent; the block stays."""
    await service.detach(principal, agent_id, block_id)


@router.post(
    "/blocks",
    status_code=201,
    responses=responses_for(
        IdTakenError,
        UserNotFoundError,
        AgentNotFoundError,
        SessionNotFoundError,
        SessionEndedError,
        LabelTakenError,
        BlockLimitError,
        DisabledError,
        MemoryDisabledError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def add_block(
    body: BlockCreate, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> BlockRead:
    """Create a block: text that is always in the context of the agents it is attached to."""
    return await service.add(principal, body, key=key)


@router.get("/blocks", responses=responses_for(InvalidCursorError))
async def list_blocks(
    query: Annotated[BlockQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[BlockRead]:
    """List blocks, newest first."""
    return await service.list_blocks(principal, query)


@router.get("/blocks/{block_id}", responses=responses_for(BlockNotFoundError))
async def get_block(block_id: Id, principal: ReaderDep, service: ServiceDep) -> BlockRead:
    """One block."""
    return await service.get(principal, block_id)


@router.patch(
    "/blocks/{block_id}",
    responses=responses_for(
        *WRITE_ERRORS, LabelTakenError, TemplateBoundError, VersionRequiredError
    ),
)
async def update_block(
    block_id: Id,
    body: BlockPatch,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
) -> BlockRead:
    """Change a block; what is left out stays, its limit too. One that is read-only needs an
    admin key.
    """
    return await service.patch(principal, block_id, body, expected=version)


@router.delete(
    "/blocks/{block_id}", responses=responses_for(BlockNotFoundError, ConfirmationRequiredError)
)
async def delete_block(
    block_id: Id,
    query: Annotated[BlockDeleteQuery, Query()],
    principal: WriterDep,
    service: ServiceDep,
) -> BlockDeleted:
    """Delete a block for good: from every agent, with its history and users' copies of it."""
    return await service.delete(principal, block_id, query)


@router.post("/blocks/{block_id}/append", responses=responses_for(*EDIT_ERRORS))
async def append_to_block(
    block_id: Id,
    body: BlockAppend,
    principal: WriterDep,
    service: ServiceDep,
    version: VersionDep,
    key: IdempotencyKeyDep,
) -> BlockRead:
    """Add a line at the end. Two at once both land."""
    return await service.edit(principal, block_id, body, expected=version, key=key)


@router.post(
    "/blocks/{block_id}/replace",
    responses=responses_for(*EDIT_ERRORS, TextNotFoundError, TextNotUniqueError),
)
async def replace_in_block(
    block_id: Id,
    body: BlockReplace,
    principal: WriterDep,
    service: ServiceDep,
    version: VersionDep,
    key: IdempotencyKeyDep,
) -> BlockRead:
    """Replace text that occurs exactly once."""
    return await service.edit(principal, block_id, body, expected=version, key=key)


@router.post(
    "/blocks/{block_id}/insert", responses=responses_for(*EDIT_ERRORS, LineOutOfRangeError)
)
async def insert_into_block(
    block_id: Id,
    body: BlockInsert,
    principal: WriterDep,
    service: ServiceDep,
    version: VersionDep,
    key: IdempotencyKeyDep,
) -> BlockRead:
    """Insert text after a line."""
    return await service.edit(principal, block_id, body, expected=version, key=key)


@router.post(
    "/blocks/{block_id}/rewrite", responses=responses_for(*EDIT_ERRORS, VersionRequiredError)
)
async def rewrite_block(
    block_id: Id,
    body: BlockRewrite,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
    key: IdempotencyKeyDep,
) -> BlockRead:
    """Say all of it anew."""
    return await service.edit(principal, block_id, body, expected=version, key=key)


@router.post(
    "/blocks/{block_id}/undo",
    responses=responses_for(
        *WRITE_ERRORS,
        BlockReadOnlyError,
        NothingToUndoError,
        VersionRequiredError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def undo_block(
    block_id: Id,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
    key: IdempotencyKeyDep,
) -> BlockRead:
    """Go back to the text before the last change. The limit stays as it is."""
    return await service.step(principal, block_id, back=True, expected=version, key=key)


@router.post(
    "/blocks/{block_id}/redo",
    responses=responses_for(
        *WRITE_ERRORS,
        BlockReadOnlyError,
        NothingToRedoError,
        VersionRequiredError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def redo_block(
    block_id: Id,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
    key: IdempotencyKeyDep,
) -> BlockRead:
    """Take back an undo. A change after the undo leaves nothing to redo."""
    return await service.step(principal, block_id, back=False, expected=version, key=key)


@router.get(
    "/blocks/{block_id}/history", responses=responses_for(BlockNotFoundError, InvalidCursorError)
)
async def list_block_history(
    block_id: Id,
    query: Annotated[PageQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[BlockHistoryRead]:
    """What a block said after each of its last hundred changes, newest first."""
    return await service.history(principal, block_id, query)
