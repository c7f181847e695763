"""/v1/webhooks, their secrets and the log of their deliveries; all with an admin key"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.errors import DisabledError, VersionConflictError
from app.governance.webhooks.schemas import (
    DeliveryNotFoundError,
    DeliveryQuery,
    DeliveryRead,
    TargetRefusedError,
    TooManyWebhooksError,
    WebhookCreate,
    WebhookNotFoundError,
    WebhookPatch,
    WebhookRead,
    WebhookWithSecret,
)
from app.governance.webhooks.service import WebhookService
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    AdminDep,
    IdempotencyKeyDep,
)
from app.platform.http.dependencies import VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page, PageQuery

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[WebhookService, provided(WebhookService)]


@router.post(
    "",
    status_code=201,
    responses=responses_for(TargetRefusedError, TooManyWebhooksError, *IDEMPOTENCY_ERRORS),
)
async def add_webhook(
    body: WebhookCreate, principal: AdminDep, service: ServiceDep, key: IdempotencyKeyDep
) -> WebhookWithSecret:
    """Create a webhook; the secret that signs its requests is shown once."""
    return await service.add(principal, body, key=key)


@router.get("", responses=responses_for(InvalidCursorError))
async def list_webhooks(
    query: Annotated[PageQuery, Query()], principal: AdminDep, service: ServiceDep
) -> Page[WebhookRead]:
    """List webhooks, newest first."""
    return await service.list_webhooks(principal, query)


@router.get("/{webhook_id}", responses=responses_for(WebhookNotFoundError))
async def get_webhook(webhook_id: Id, principal: AdminDep, service: ServiceDep) -> WebhookRead:
    """Get a webhook, and whether it is failing."""
    return await service.get(principal, webhook_id)


@router.patch(
    "/{webhook_id}",
    responses=responses_for(WebhookNotFoundError, VersionConflictError, TargetRefusedError),
)
async def update_webhook(
    webhook_id: Id,
    body: WebhookPatch,
    principal: AdminDep,
    service: ServiceDep,
    version: VersionDep,
) -> WebhookRead:
    """Change a webhook; omitted fields stay. When enabled again, pending events are sent."""
    return await service.patch(principal, webhook_id, body, expected=version)


@router.delete("/{webhook_id}", status_code=204, responses=responses_for(WebhookNotFoundError))
async def delete_webhook(webhook_id: Id, principal: AdminDep, service: ServiceDep) -> None:
    """Delete a webhook with the log of its deliveries; pending events are not sent."""
    await service.remove(principal, webhook_id)


@router.post(
    "/{webhook_id}/rotate-secret",
    responses=responses_for(WebhookNotFoundError, *IDEMPOTENCY_ERRORS),
)
async def rotate_webhook_secret(
    webhook_id: Id, principal: AdminDep, service: ServiceDep, key: IdempotencyKeyDep
) -> WebhookWithSecret:
    """Make a new secret, shown once; for 24 hours requests carry a signature of each."""
    return await service.rotate_secret(principal, webhook_id, key=key)


@router.post(
    "/{webhook_id}/test",
    status_code=202,
    responses=responses_for(WebhookNotFoundError, DisabledError, *IDEMPOTENCY_ERRORS),
)
async def test_webhook(
    webhook_id: Id, principal: AdminDep, service: ServiceDep, key: IdempotencyKeyDep
) -> DeliveryRead:
    """Send the event `webhook.test`; see the result in the deliveries shortly after."""
    return await service.test(principal, webhook_id, key=key)


@router.get(
    "/{webhook_id}/deliveries", responses=responses_for(WebhookNotFoundError, InvalidCursorError)
)
async def list_webhook_deliveries(
    webhook_id: Id,
    query: Annotated[DeliveryQuery, Query()],
    principal: AdminDep,
    service: ServiceDep,
) -> Page[DeliveryRead]:
    """List a webhook's deliveries, newest first; delivered ones are kept a week."""
    return await service.list_deliveries(principal, webhook_id, query)


@router.post(
    "/{webhook_id}/deliveries/{delivery_id}/redeliver",
    status_code=202,
    responses=responses_for(
        WebhookNotFoundError, DeliveryNotFoundError, DisabledError, *IDEMPOTENCY_ERRORS
    ),
)
async def redeliver_webhook_delivery(
    webhook_id: Id,
    delivery_id: Id,
    principal: AdminDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> DeliveryRead:
    """Send an event again as a new delivery; `event_id` stays, so receivers recognise it."""
    return await service.redeliver(principal, webhook_id, delivery_id, key=key)
