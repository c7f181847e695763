"""mem0's profiles of users, the jobs that derive them, and the schema of their own fields."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.identity.tenants.principal import IdempotencyKeyDep, ReaderDep, WriterDep
from app.integrations.mem0.profile_schemas import (
    EntityId,
    Mem0Profile,
    Mem0ProfileJob,
    Mem0ProfileJobCreate,
    Mem0ProfileJobRead,
    Mem0ProfileSettings,
    Mem0ProfileSettingsRead,
)
from app.integrations.mem0.profile_service import Mem0ProfileService, Mem0ProfileSettingsService
from app.integrations.mem0.router import same_project
from app.platform.http.dependencies import provided

router = APIRouter(prefix="/v2", tags=["mem0"], dependencies=[Depends(same_project)])

ServiceDep = Annotated[Mem0ProfileService, provided(Mem0ProfileService)]
SettingsDep = Annotated[Mem0ProfileSettingsService, provided(Mem0ProfileSettingsService)]


@router.get("/entities/user/{entity_id:path}/profile/")
async def get_profile(
    entity_id: EntityId, principal: ReaderDep, service: ServiceDep
) -> Mem0Profile:
    """What is known of a user; `status` says why nothing is."""
    return await service.get(principal, entity_id)


@router.post("/profiles/jobs/", status_code=202)
async def order_profiles(
    body: Mem0ProfileJobCreate,
    principal: WriterDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> Mem0ProfileJob:
    """Derive the profile of one user, or of a few, now."""
    return await service.generate(principal, body, key=key)


@router.get("/profiles/jobs/{job_id}/")
async def get_profile_job(
    job_id: str, principal: ReaderDep, service: ServiceDep
) -> Mem0ProfileJobRead:
    """How far an order is."""
    return await service.job(principal, job_id)


@router.get("/profiles/settings/")
async def get_profile_settings(
    principal: ReaderDep, service: SettingsDep
) -> Mem0ProfileSettingsRead:
    """The schema of the fields of your own."""
    return await service.get(principal)


@router.post("/profiles/settings/")
async def update_profile_settings(
    body: Mem0ProfileSettings, principal: WriterDep, service: SettingsDep
) -> Mem0ProfileSettingsRead:
    """Change the schema; what has no counterpart is refused by name."""
    return await service.update(principal, body)
