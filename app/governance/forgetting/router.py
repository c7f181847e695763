"""/v1/forgetting."""

from typing import Annotated

from fastapi import APIRouter, Response

from app.governance.forgetting.schemas import ForgettingRead, ForgettingRunCreate, ForgettingRunRead
from app.governance.forgetting.service import ForgettingService
from app.identity.agents.errors import AgentNotFoundError
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    AdminDep,
    IdempotencyKeyDep,
)
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for

router = APIRouter(
    prefix="/v1/forgetting",
    tags=["forgetting"],
    responses=responses_for(*KEY_ERRORS, KeyRestrictedError),
)


ServiceDep = Annotated[ForgettingService, provided(ForgettingService)]


@router.get("")
async def get_forgetting(principal: AdminDep, service: ServiceDep) -> ForgettingRead:
    """Show what is forgotten automatically, by agent, and the results of the last runs."""
    return await service.get(principal)


@router.post(
    "/run",
    responses={
        202: {"model": ForgettingRunRead, "description": "Without dry_run: the job is ordered."},
        **responses_for(AgentNotFoundError, *IDEMPOTENCY_ERRORS),
    },
)
async def run_forgetting(
    body: ForgettingRunCreate,
    principal: AdminDep,
    service: ServiceDep,
    response: Response,
    key: IdempotencyKeyDep,
) -> ForgettingRunRead:
    """Show what would be forgotten now, step by step; with `dry_run` false, order the job."""
    if body.dry_run:
        return await service.preview(principal, body, key=key)
    response.status_code = 202
    return await service.order(principal, body, key=key)
