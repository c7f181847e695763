"""mem0's webhooks: /api/v1/webhooks/; all with an admin key."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.identity.tenants.principal import AdminDep
from app.integrations.mem0.project_schemas import Mem0Message
from app.integrations.mem0.router import same_project
from app.integrations.mem0.webhook_schemas import (
    Mem0Webhook,
    Mem0WebhookCreate,
    Mem0WebhookUpdate,
)
from app.integrations.mem0.webhook_service import Mem0WebhookService
from app.platform.http.dependencies import provided

router = APIRouter(prefix="/api/v1/webhooks", tags=["mem0"], dependencies=[Depends(same_project)])

ServiceDep = Annotated[Mem0WebhookService, provided(Mem0WebhookService)]


@router.get("/projects/{project}/")
async def list_webhooks(
    project: str, principal: AdminDep, service: ServiceDep
) -> list[Mem0Webhook]:
    """All webhooks of the tenant, newest first."""
    return await service.list_webhooks(principal, project)


@router.post("/projects/{project}/", status_code=201)
async def add_webhook(
    project: str, body: Mem0WebhookCreate, principal: AdminDep, service: ServiceDep
) -> Mem0Webhook:
    """Create a webhook; what it gets are events of ours, signed with the `secret` shown here."""
    return await service.add(principal, project, body)


@router.put("/{webhook_id}/")
async def update_webhook(
    webhook_id: str, body: Mem0WebhookUpdate, principal: AdminDep, service: ServiceDep
) -> Mem0Message:
    """Change a webhook; omitted fields stay."""
    await service.update(principal, webhook_id, body)
    return Mem0Message(message="Webhook updated successfully")


@router.delete("/{webhook_id}/")
async def delete_webhook(webhook_id: str, principal: AdminDep, service: ServiceDep) -> Mem0Message:
    """Delete a webhook with the log of its deliveries."""
    await service.delete(principal, webhook_id)
    return Mem0Message(message="Webhook deleted successfully")
