"""/v1/store"""

import asyncio
from typing import Annotated

from fastapi import APIRouter
from pydantic_core import to_json
from starlette.responses import Response

from app.errors import DisabledError, IdTakenError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.users.schemas import UserNotFoundError
from app.language.llm.errors import EmbeddingUnavailableError, UnknownEmbedderError
from app.memory.store.schemas import (
    StoreAnswerTooLargeError,
    StoreBatch,
    StoreResults,
    StoreSwept,
    TooManyTextsError,
)
from app.memory.store.service import StoreService
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.work.unit import MemoryDisabledError

router = APIRouter(prefix="/v1/store", tags=["store"], responses=responses_for(*KEY_ERRORS))

ServiceDep = Annotated[StoreService, provided(StoreService)]


@router.post(
    "/batch",
    response_model=StoreResults,
    responses=responses_for(
        StoreAnswerTooLargeError,
        TooManyTextsError,
        UserNotFoundError,
        AgentNotFoundError,
        IdTakenError,
        DisabledError,
        MemoryDisabledError,
        EmbeddingUnavailableError,
        UnknownEmbedderError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def run_store_batch(
    body: StoreBatch, principal: ReaderDep, service: ServiceDep, key: IdempotencyKeyDep
) -> Response:
    """Get, put, delete and search items, and list namespaces; one result per operation, in order.

    Reads see the store as it was before the request; of several changes of one item the last
    counts. All changes are made, or none. They need the scope `write`. A key of a user or an
    agent, and a request with `KeMem-User`, work in a store of their own.
    """
    # Written out at once, in a thread; the published schema is held against it by the tests.
    answer = await service.run(principal, body, key=key)
    return Response(await asyncio.to_thread(to_json, answer), media_type="application/json")


@router.post("/sweep", responses=responses_for(*IDEMPOTENCY_ERRORS))
async def sweep_store(
    principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> StoreSwept:
    """Delete the items that have expired; the service does so by itself once an hour."""
    return await service.sweep(principal, key)
