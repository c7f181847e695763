"""mem0's projects (/api/v1/orgs/: the project of a key is its tenant) and its webhooks
(/api/v1/webhooks/), all with an admin key.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import JsonValue

from app.identity.tenants.principal import AdminDep, ReaderDep
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
