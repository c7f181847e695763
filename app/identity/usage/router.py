"""/v1/usage."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.identity.tenants.principal import KEY_ERRORS, ReaderDep
from app.identity.usage.quota import InvalidDaysError
from app.identity.usage.schemas import UsageAnswer, UsageQuery
from app.identity.usage.service import UsageService
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for

router = APIRouter(prefix="/v1/usage", tags=["usage"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[UsageService, provided(UsageService)]


@router.get("", responses=responses_for(InvalidDaysError))
async def get_usage(
    query: Annotated[UsageQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> UsageAnswer:
    """Show calls and tokens of models by day, and what is left of today's quota."""
    return await service.get(principal, query)
