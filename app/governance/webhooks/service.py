"""Use cases of webhooks and of the log of their deliveries."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import structlog

from app.errors import DisabledError
from app.governance.webhooks.repository import DeliveryRepository, WebhookRepository
from app.governance.webhooks.schemas import (
    DeliveryQuery,
    DeliveryRead,
    WebhookCreate,
    WebhookPatch,
    WebhookRead,
    WebhookWithSecret,
)
from app.governance.webhooks.sender import PREFIX, SecretBox, new_secret
from app.governance.webhooks.targets import Targets
from app.identity.tenants.access import Principal
from app.platform.database.base import apply_changes, new_id
from app.platform.database.engine import Database
from app.platform.outbox.models import Event, Webhook
from app.platform.outbox.repository import OutboxRepository
from app.platform.values.pagination import Page, PageQuery, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

BOTH_SECRETS_SIGN = timedelta(hours=24)
"""After a rotation, so that the receiver can change over without missing anything."""

_FRESH = {"disabled_reason": None, "failures": 0, "failing_since": None, "paused_until": None}


class WebhookService:
    def __init__(
        self, work: Work, targets: Targets, secrets: SecretBox, now: Callable[[], datetime]
    ) -> None:
        self._work = work
        self._targets = targets
        self._secrets = secrets
        self._now = now

    async def add(
        self, principal: Principal, body: WebhookCreate, *, key: IdempotencyKey | None = None
    ) -> WebhookWithSecret:
        """Create a webhook; its secret is in this answer only.

        Safe to repeat with the idempotency key; the repeated answer has no secret.

        Raises:
            TargetRefusedError: the address may not be called.
            TooManyWebhooksError: the tenant has as many webhooks as allowed.
            SecretKeyMissingError: the deployment has no key to store a secret with.

        """
        url = str(body.url)
        secret = new_secret()
        await self._targets.check(url)
        webhook = Webhook(
            webhook_id=new_id("whk"),
            url=url,
            secret=self._secrets.seal(secret),
            events=list(body.events),
            description=body.description,
            enabled=body.enabled,
            creator=principal.key_id,
        )
        async with self._work.write(principal, key, while_disabled=True) as unit:
            await WebhookRepository(unit.db, principal.tenant_id).add(webhook)
            kept = WebhookWithSecret.model_validate(webhook).model_copy(update={"secret": None})
            shown = kept.model_copy(update={"secret": secret})
            unit.answer(shown, 201, kept=kept)
        log.info("webhook_created", webhook_id=webhook.webhook_id)
        return shown

    async def get(self, principal: Principal, webhook_id: str) -> WebhookRead:
        """The webhook, without its secret.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.

        """
        async with self._work.read(principal) as db:
            webhook = await WebhookRepository(db, principal.tenant_id).get(webhook_id)
            return WebhookRead.model_validate(webhook)

    async def list_webhooks(self, principal: Principal, query: PageQuery) -> Page[WebhookRead]:
        """A page of webhooks, newest first, without their secrets.

        Raises:
            InvalidCursorError: the cursor is not one of this list.

        """
        start = decode_time(query.cursor, "webhooks")
        async with self._work.read(principal) as db:
            rows = await WebhookRepository(db, principal.tenant_id).list_webhooks(
                start=start, limit=query.limit
            )
        return page(
            "webhooks",
            rows,
            query.limit,
            show=WebhookRead.model_validate,
            place=lambda webhook: (webhook.create_time, webhook.webhook_id),
        )

    async def patch(
        self, principal: Principal, webhook_id: str, body: WebhookPatch, *, expected: int | None
    ) -> WebhookRead:
        """Change a webhook; enabling it clears its failures and its pause.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.
            VersionConflictError: its version is not `expected`.
            TargetRefusedError: the new address may not be called.

        """
        changes: dict[str, Any] = {
            name: value
            for name, value in body.model_dump(exclude_unset=True).items()
            if value is not None or name == "description"
        }
        if body.url is not None:
            changes["url"] = str(body.url)
            await self._targets.check(changes["url"])
        if body.enabled:
            changes |= _FRESH
        async with self._work.write(principal, while_disabled=True) as unit:
            webhook = await WebhookRepository(unit.db, principal.tenant_id).patch(
                webhook_id, changes, expected=expected
            )
            if webhook.secret.startswith(PREFIX):
                reseal(webhook, self._secrets)
            return WebhookRead.model_validate(webhook)

    async def remove(self, principal: Principal, webhook_id: str) -> None:
        """Delete a webhook with all its deliveries, sent or not.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            await WebhookRepository(unit.db, principal.tenant_id).remove(webhook_id)
        log.info("webhook_deleted", webhook_id=webhook_id)

    async def rotate_secret(
        self, principal: Principal, webhook_id: str, *, key: IdempotencyKey | None = None
    ) -> WebhookWithSecret:
        """Give a webhook a new secret; for a day the previous secret signs too.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.
            SecretKeyMissingError: the deployment has no key to store a secret with.

        """
        secret = new_secret()
        sealed = self._secrets.seal(secret)
        async with self._work.write(principal, key, while_disabled=True) as unit:
            webhook = await WebhookRepository(unit.db, principal.tenant_id).get(
                webhook_id, lock=True
            )
            changes = {
                "secret": sealed,
                "old_secret": self._secrets.resealed(webhook.secret),
                "old_secret_expires_at": self._now() + BOTH_SECRETS_SIGN,
            }
            await apply_changes(unit.db, webhook, changes, expected=None)
            kept = WebhookWithSecret.model_validate(webhook).model_copy(update={"secret": None})
            shown = kept.model_copy(update={"secret": secret})
            unit.answer(shown, 200, kept=kept)
        log.info("webhook_secret_rotated", webhook_id=webhook_id)
        return shown

    async def test(
        self, principal: Principal, webhook_id: str, *, key: IdempotencyKey | None = None
    ) -> DeliveryRead:
        """Order the delivery of an event `webhook.test`, sent like all other events.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.
            DisabledError: the webhook is disabled.

        """
        tenant_id = principal.tenant_id
        async with self._work.write(principal, key, while_disabled=True) as unit:
            webhook = await self._enabled(WebhookRepository(unit.db, tenant_id), webhook_id)
            event = Event("webhook.test", {"webhook_id": webhook_id})
            delivery_id = await OutboxRepository(unit.db, tenant_id).publish_to(webhook_id, event)
            if delivery_id is None:
                raise DisabledError("webhook", webhook_id)
            webhook.paused_until = None
            deliveries = DeliveryRepository(unit.db, tenant_id, webhook_id)
            return unit.answer(DeliveryRead.model_validate(await deliveries.get(delivery_id)), 202)

    async def list_deliveries(
        self, principal: Principal, webhook_id: str, query: DeliveryQuery
    ) -> Page[DeliveryRead]:
        """A page of a webhook's deliveries, sent or pending, newest first.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.
            InvalidCursorError: the cursor is not one of this list.

        """
        start = decode_time(query.cursor, "deliveries")
        tenant_id = principal.tenant_id
        async with self._work.read(principal) as db:
            await WebhookRepository(db, tenant_id).get(webhook_id)
            rows = await DeliveryRepository(db, tenant_id, webhook_id).list_deliveries(
                start=start, limit=query.limit, status=query.status, event_type=query.event_type
            )
        return page(
            "deliveries",
            rows,
            query.limit,
            show=DeliveryRead.model_validate,
            place=lambda delivery: (delivery.create_time, delivery.delivery_id),
        )

    async def redeliver(
        self,
        principal: Principal,
        webhook_id: str,
        delivery_id: str,
        *,
        key: IdempotencyKey | None = None,
    ) -> DeliveryRead:
        """Order a new delivery of an event, whatever the result of the first; the event id stays.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.
            DeliveryNotFoundError: the webhook has no such delivery.
            DisabledError: the webhook is disabled.

        """
        tenant_id = principal.tenant_id
        async with self._work.write(principal, key, while_disabled=True) as unit:
            webhook = await self._enabled(WebhookRepository(unit.db, tenant_id), webhook_id)
            deliveries = DeliveryRepository(unit.db, tenant_id, webhook_id)
            delivery = await deliveries.repeat(await deliveries.get(delivery_id))
            webhook.paused_until = None
            shown = DeliveryRead.model_validate(delivery)
            return unit.answer(shown, 202, user_id=delivery.user_id)

    async def _enabled(self, webhooks: WebhookRepository, webhook_id: str) -> Webhook:
        """The webhook, locked: the caller ends its pause.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.
            DisabledError: it is disabled.

        """
        webhook = await webhooks.get(webhook_id, lock=True)
        if not webhook.enabled:
            raise DisabledError("webhook", webhook_id)
        return webhook


class SecretService:
    """Encrypts what is stored of secrets: plain ones of an earlier release, or after a change of
    MEMORY_SECRET_KEY.
    """

    def __init__(self, database: Database, secrets: SecretBox) -> None:
        self._database = database
        self._secrets = secrets

    async def encrypt(self, tenant_id: str) -> tuple[int, int]:
        """Encrypt the secrets of a tenant's webhooks with the first key. Safe to repeat.

        Returns:
            How many webhooks there are, and how many of them have a secret that no key opens.

        """
        async with self._database.begin(tenant_id) as db:
            webhooks = await WebhookRepository(db, tenant_id).lock_all()
            for webhook in webhooks:
                reseal(webhook, self._secrets)
            unread = [webhook for webhook in webhooks if self._secrets.open(webhook.secret) is None]
            return len(webhooks), len(unread)


def reseal(webhook: Webhook, secrets: SecretBox) -> None:
    """Encrypt the secrets of a locked webhook with the first key, where that can be done."""
    webhook.secret = secrets.resealed(webhook.secret)
    if webhook.old_secret is not None:
        webhook.old_secret = secrets.resealed(webhook.old_secret)
