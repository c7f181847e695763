"""/v1/usage"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.identity.tenants.principal import KEY_ERRORS, ReaderDep
from app.identity.usage.errors import InvalidDaysError
from app.identity.usage.quota import Quota
from app.identity.usage.schemas import UsageAnswer, UsageQuery
from app.identity.usage.service import UsageService
from app.platform.http.dependencies import RuntimeDep
from app.platform.http.problems import responses_for

router = APIRouter(prefix="/v1/usage", tags=["usage"], responses=responses_for(*KEY_ERRORS))


async def get_service(runtime: RuntimeDep) -> UsageService:
    settings = runtime.settings
    return UsageService(runtime.database, Quota(settings.daily_calls, settings.daily_tokens))


ServiceDep = Annotated[UsageService, Depends(get_service)]


@router.get("", responses=responses_for(InvalidDaysError))
async def get_usage(
    query: Annotated[UsageQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> UsageAnswer:
    """Calls and tokens of models, by day, and what is left of today's quota."""
    return await service.get(principal, query)
