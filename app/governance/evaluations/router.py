"""/v1/evaluations."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.governance.evaluations.schemas import (
    EvaluationCreate,
    EvaluationNotFoundError,
    EvaluationQuery,
    EvaluationRead,
)
from app.governance.evaluations.service import EvaluationService
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    AdminDep,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page

router = APIRouter(
    prefix="/v1/evaluations",
    tags=["statistics"],
    responses=responses_for(*KEY_ERRORS, KeyRestrictedError),
)


ServiceDep = Annotated[EvaluationService, provided(EvaluationService)]


@router.post("", status_code=201, responses=responses_for(*IDEMPOTENCY_ERRORS))
async def add_evaluation(
    body: EvaluationCreate, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> EvaluationRead:
    """Keep what an evaluation measured; the newest 1,000 are kept."""
    return await service.add(principal, body, key=key)


@router.get("", responses=responses_for(InvalidCursorError))
async def list_evaluations(
    query: Annotated[EvaluationQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[EvaluationRead]:
    """List kept evaluations, newest first."""
    return await service.list_results(principal, query)


@router.get("/{evaluation_id}", responses=responses_for(EvaluationNotFoundError))
async def get_evaluation(
    evaluation_id: Id, principal: ReaderDep, service: ServiceDep
) -> EvaluationRead:
    """Read a kept evaluation."""
    return await service.get(principal, evaluation_id)


@router.delete(
    "/{evaluation_id}", status_code=204, responses=responses_for(EvaluationNotFoundError)
)
async def delete_evaluation(evaluation_id: Id, principal: AdminDep, service: ServiceDep) -> None:
    """Delete a kept evaluation."""
    await service.delete(principal, evaluation_id)
