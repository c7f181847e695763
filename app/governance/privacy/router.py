"""/v1/erasures."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.governance.privacy.schemas import ErasureListQuery, ErasureRead
from app.governance.privacy.service import ErasureService
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.tenants.principal import KEY_ERRORS, AdminDep
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.values.pagination import InvalidCursorError, Page

router = APIRouter(responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[ErasureService, provided(ErasureService)]


@router.get(
    "/v1/erasures",
    tags=["forgetting"],
    responses=responses_for(KeyRestrictedError, InvalidCursorError),
)
async def list_erasures(
    query: Annotated[ErasureListQuery, Query()], principal: AdminDep, service: ServiceDep
) -> Page[ErasureRead]:
    """List receipts of erasures, newest first; `kind` and `id` find those of one subject."""
    return await service.receipts(principal, query)
