"""What mem0's clients manage besides memories: projects (/api/v1/orgs/: the project of a key is its
tenant), webhooks (/api/v1/webhooks/), both with an admin key, and profiles of users, the jobs that
derive them, and the schema of their own fields.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import JsonValue

from app.identity.tenants.principal import AdminDep, IdempotencyKeyDep, ReaderDep, WriterDep
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
from app.integrations.mem0.project_schemas import (
    Mem0Members,
    Mem0Message,
    Mem0ProjectUpdate,
    Mem0Webhook,
    Mem0WebhookCreate,
    Mem0WebhookUpdate,
    no_members,
    no_project_management,
    refuse_other_project,
)
from app.integrations.mem0.project_service import Mem0ProjectService, Mem0WebhookService
from app.integrations.mem0.router import same_project
from app.platform.http.dependencies import provided

router = APIRouter(
    prefix="/api/v1/orgs/organizations/{organization}/projects",
    tags=["mem0"],
    dependencies=[Depends(same_project)],
)

ServiceDep = Annotated[Mem0ProjectService, provided(Mem0ProjectService)]


@router.get("/{project}/")
async def get_project(
    organization: str,
    project: str,
    principal: ReaderDep,
    service: ServiceDep,
    fields: Annotated[list[str] | None, Query(max_length=20)] = None,
) -> dict[str, JsonValue]:
    """The project, or only the named fields of it."""
    refuse_other_project(principal, organization, project)
    return await service.get(principal, fields or [])


@router.patch("/{project}/")
async def update_project(
    organization: str,
    project: str,
    body: Mem0ProjectUpdate,
    principal: AdminDep,
    service: ServiceDep,
) -> Mem0Message:
    """Set `custom_instructions`; what has no counterpart is refused by name."""
    refuse_other_project(principal, organization, project)
    await service.update(principal, body)
    return Mem0Message(message="Project updated successfully")


@router.get("/{project}/members/")
async def list_members(organization: str, project: str, principal: AdminDep) -> Mem0Members:
    """Always empty: who may call has a key."""
    refuse_other_project(principal, organization, project)
    return Mem0Members()


@router.post("/")
async def create_project(organization: str, principal: AdminDep) -> Mem0Message:
    """Refused: an operator makes tenants."""
    refuse_other_project(principal, organization)
    raise no_project_management()


@router.delete("/{project}/")
async def delete_project(organization: str, project: str, principal: AdminDep) -> Mem0Message:
    """Refused: an operator deletes tenants."""
    refuse_other_project(principal, organization, project)
    raise no_project_management()


async def change_members(
    organization: str,
    project: str,
    principal: AdminDep,
    _email: Annotated[str | None, Query(alias="email", max_length=320)] = None,
) -> Mem0Message:
    """Refused: there are keys, and no members."""
    refuse_other_project(principal, organization, project)
    raise no_members()


for _verb, _method in (("add", "POST"), ("update", "PUT"), ("remove", "DELETE")):
    router.add_api_route(
        "/{project}/members/",
        change_members,
        methods=[_method],
        name=f"{_verb}_member",
        operation_id=f"{_verb}_member",
    )


webhook_router = APIRouter(
    prefix="/api/v1/webhooks", tags=["mem0"], dependencies=[Depends(same_project)]
)

WebhookDep = Annotated[Mem0WebhookService, provided(Mem0WebhookService)]


@webhook_router.get("/projects/{project}/")
async def list_webhooks(
    project: str, principal: AdminDep, service: WebhookDep
) -> list[Mem0Webhook]:
    """All webhooks of the tenant, newest first."""
    return await service.list_webhooks(principal, project)


@webhook_router.post("/projects/{project}/", status_code=201)
async def add_webhook(
    project: str, body: Mem0WebhookCreate, principal: AdminDep, service: WebhookDep
) -> Mem0Webhook:
    """Create a webhook; what it gets are events of ours, signed with the `secret` shown here."""
    return await service.add(principal, project, body)


@webhook_router.put("/{webhook_id}/")
async def update_webhook(
    webhook_id: str, body: Mem0WebhookUpdate, principal: AdminDep, service: WebhookDep
) -> Mem0Message:
    """Change a webhook; omitted fields stay."""
    await service.update(principal, webhook_id, body)
    return Mem0Message(message="Webhook updated successfully")


@webhook_router.delete("/{webhook_id}/")
async def delete_webhook(webhook_id: str, principal: AdminDep, service: WebhookDep) -> Mem0Message:
    """Delete a webhook with the log of its deliveries."""
    await service.delete(principal, webhook_id)
    return Mem0Message(message="Webhook deleted successfully")


profile_router = APIRouter(prefix="/v2", tags=["mem0"], dependencies=[Depends(same_project)])

ProfileDep = Annotated[Mem0ProfileService, provided(Mem0ProfileService)]
SettingsDep = Annotated[Mem0ProfileSettingsService, provided(Mem0ProfileSettingsService)]


@profile_router.get("/entities/user/{entity_id:path}/profile/")
async def get_profile(
    entity_id: EntityId, principal: ReaderDep, service: ProfileDep
) -> Mem0Profile:
    """What is known of a user; `status` says why nothing is."""
    return await service.get(principal, entity_id)


@profile_router.post("/profiles/jobs/", status_code=202)
async def order_profiles(
    body: Mem0ProfileJobCreate,
    principal: WriterDep,
    service: ProfileDep,
    key: IdempotencyKeyDep,
) -> Mem0ProfileJob:
    """Derive the profile of one user, or of a few, now."""
    return await service.generate(principal, body, key=key)


@profile_router.get("/profiles/jobs/{job_id}/")
async def get_profile_job(
    job_id: str, principal: ReaderDep, service: ProfileDep
) -> Mem0ProfileJobRead:
    """How far an order is."""
    return await service.job(principal, job_id)


@profile_router.get("/profiles/settings/")
async def get_profile_settings(
    principal: ReaderDep, service: SettingsDep
) -> Mem0ProfileSettingsRead:
    """The schema of the fields of your own."""
    return await service.get(principal)


@profile_router.post("/profiles/settings/")
async def update_profile_settings(
    body: Mem0ProfileSettings, principal: WriterDep, service: SettingsDep
) -> Mem0ProfileSettingsRead:
    """Change the schema; what has no counterpart is refused by name."""
    return await service.update(principal, body)
