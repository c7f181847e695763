"""POST /v1/memories/decisions/{decision_id}/store"""

from typing import Annotated

from fastapi import APIRouter

from app.conversation.sessions.schemas import SessionNotFoundError
from app.errors import DisabledError
from app.identity.projects.schemas import ProjectNotFoundError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    AdminDep,
    IdempotencyKeyDep,
)
from app.identity.users.schemas import UserNotFoundError, UserRequiredError
from app.language.llm.errors import EmbeddingUnavailableError
from app.memory.memories.errors import (
    DecisionNotFoundError,
    DuplicateMemoryError,
    GateRejectedError,
    NotStorableError,
)
from app.memory.memories.refused_service import RefusedTextService
from app.memory.memories.search_schemas import RefusedStore, RefusedStored
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.plugins.runner import ProcessorFailedError
from app.platform.values.fields import Id
from app.platform.work.unit import MemoryDisabledError, MemoryPausedError

router = APIRouter(prefix="/v1/memories", tags=["memories"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[RefusedTextService, provided(RefusedTextService)]


@router.post(
    "/decisions/{decision_id}/store",
    status_code=201,
    responses=responses_for(
        DecisionNotFoundError,
        NotStorableError,
        GateRejectedError,
        DuplicateMemoryError,
        UserRequiredError,
        UserNotFoundError,
        SessionNotFoundError,
        ProjectNotFoundError,
        DisabledError,
        MemoryDisabledError,
        MemoryPausedError,
        EmbeddingUnavailableError,
        ProcessorFailedError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def store_refused(
    decision_id: Id,
    body: RefusedStore,
    principal: AdminDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> RefusedStored:
    """Remember a text that the gate refused, past the rules that its verdict names."""
    return await service.store(principal, decision_id, body, key=key)
