"""SQL for webhooks, and for their deliveries as a person reads and a worker sends them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg
from sqlalchemy import ColumnElement, and_, case, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.governance.webhooks.schemas import (
    DeliveryNotFoundError,
    TooManyWebhooksError,
    WebhookNotFoundError,
)
from app.governance.webhooks.sender import LULL
from app.platform.database.base import after, apply_changes, new_id
from app.platform.database.engine import Database
from app.platform.outbox.models import Webhook, WebhookDelivery

MOST_WEBHOOKS = 20
"""Per tenant: each event is written once for each that wants it."""

# One probe of an index per webhook. Those whose job is on its way already are left out.
_DUE = """
SELECT w.tenant_id, w.webhook_id FROM webhooks w JOIN tenants t ON t.tenant_id = w.tenant_id
WHERE t.status = 1 AND w.enabled AND (w.paused_until IS NULL OR w.paused_until <= $1)
AND EXISTS (
    SELECT FROM webhook_deliveries d
    WHERE d.tenant_id = w.tenant_id AND d.webhook_id = w.webhook_id
    AND d.status = 'pending' AND d.next_attempt_at <= $1
)
AND NOT EXISTS (
    SELECT FROM jobs j
    WHERE j.tenant_id = w.tenant_id AND j.kind = $2 AND j.key = w.webhook_id
    AND j.status IN ('pending', 'running')
)
ORDER BY w.tenant_id, w.webhook_id
"""


class ClaimedDelivery(NamedTuple):
    """A delivery to be sent, with the webhook's address and secrets when it was claimed.

    Args:
        attempts: including this one.
        secret: as it is stored.
        old_secret: signs too; None when it has expired.
        failing: whether the last attempt at the webhook failed.

    """

    delivery_id: str
    event_id: str
    payload: dict[str, Any]
    attempts: int
    url: str
    secret: str
    old_secret: str | None
    failing: bool


class WebhookDirectory:
    """Which webhooks of all tenants have something to send; read as `kemem_dispatch`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, now: datetime, kind: str) -> list[asyncpg.Record]:
        """`tenant_id` and `webhook_id` of webhooks with due deliveries and no live job of
        `kind`.
        """
        return await self._database.look_up(_DUE, now, kind)

    async def exists(self) -> bool:
        """Whether any tenant has a webhook."""
        found = await self._database.look_up("SELECT EXISTS (SELECT FROM webhooks) AS found")
        return bool(found[0]["found"])


class WebhookRepository:
    """Webhooks of a tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def add(self, webhook: Webhook) -> None:
        """Store a webhook; its server defaults are loaded.

        Raises:
            TooManyWebhooksError: the tenant has `MOST_WEBHOOKS` already.

        """
        # Two requests at once must count each other's webhook.
        name = f"{self._tenant_id}\x1fwebhooks"
        await self._db.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 2))))
        count = await self._db.scalar(
            select(func.count()).where(Webhook.tenant_id == self._tenant_id)
        )
        if (count or 0) >= MOST_WEBHOOKS:
            raise TooManyWebhooksError(MOST_WEBHOOKS)
        webhook.tenant_id = self._tenant_id
        self._db.add(webhook)
        await self._db.flush()
        await self._db.refresh(webhook)

    async def get(self, webhook_id: str, *, lock: bool = False) -> Webhook:
        """The webhook; events can be published to it while it is locked.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.

        """
        statement = select(Webhook).where(self._is(webhook_id))
        if lock:
            statement = statement.with_for_update(key_share=True)
        webhook = await self._db.scalar(statement)
        if webhook is None:
            raise WebhookNotFoundError(webhook_id)
        return webhook

    async def lock_all(self) -> Sequence[Webhook]:
        """All webhooks; events can be published to them while they are locked."""
        rows = await self._db.scalars(
            select(Webhook)
            .where(Webhook.tenant_id == self._tenant_id)
            .order_by(Webhook.webhook_id)
            .with_for_update(key_share=True)
        )
        return rows.all()

    async def list_webhooks(
        self, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[Webhook]:
        """Newest first, one more than `limit` when another page follows."""
        rows = await self._db.scalars(
            after(
                select(Webhook).where(Webhook.tenant_id == self._tenant_id),
                (Webhook.create_time, Webhook.webhook_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def patch(
        self, webhook_id: str, changes: dict[str, Any], *, expected: int | None
    ) -> Webhook:
        """The changed webhook.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.
            VersionConflictError: its version is not `expected`.

        """
        webhook = await self.get(webhook_id, lock=True)
        await apply_changes(self._db, webhook, changes, expected=expected)
        return webhook

    async def remove(self, webhook_id: str) -> None:
        """Delete a webhook with all its deliveries.

        Raises:
            WebhookNotFoundError: the tenant has no such webhook.

        """
        gone = await self._db.execute(
            delete(Webhook).where(self._is(webhook_id)).returning(Webhook.webhook_id)
        )
        if gone.first() is None:
            raise WebhookNotFoundError(webhook_id)

    async def note_success(self, webhook_id: str) -> None:
        """Clear the failures; writes nothing when there are none."""
        await self._db.execute(
            update(Webhook)
            .where(self._is(webhook_id), Webhook.failures > 0)
            .values(failures=0, failing_since=None, paused_until=None)
        )

    async def note_failure(self, webhook_id: str, at: datetime) -> Webhook | None:
        """Count a failed attempt; the webhook, locked, or None when it was deleted."""
        webhook = await self._db.scalar(
            select(Webhook).where(self._is(webhook_id)).with_for_update(key_share=True)
        )
        if webhook is not None:
            webhook.failures += 1
            last = webhook.last_failure_at
            if webhook.failing_since is None or last is None or at - last > LULL:
                webhook.failing_since = at
            webhook.last_failure_at = at
        return webhook

    def _is(self, webhook_id: str) -> ColumnElement[bool]:
        return and_(Webhook.tenant_id == self._tenant_id, Webhook.webhook_id == webhook_id)


class DeliveryRepository:
    """Deliveries of one webhook of a tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str, webhook_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id
        self.webhook_id = webhook_id

    def _own(self) -> ColumnElement[bool]:
        return and_(
            WebhookDelivery.tenant_id == self._tenant_id,
            WebhookDelivery.webhook_id == self.webhook_id,
        )

    async def get(self, delivery_id: str) -> WebhookDelivery:
        """The delivery.

        Raises:
            DeliveryNotFoundError: the webhook has no such delivery.

        """
        delivery = await self._db.scalar(
            select(WebhookDelivery).where(self._own(), WebhookDelivery.delivery_id == delivery_id)
        )
        if delivery is None:
            raise DeliveryNotFoundError(delivery_id)
        return delivery

    async def list_deliveries(
        self,
        *,
        start: tuple[datetime, str] | None,
        limit: int,
        status: str | None,
        event_type: str | None,
    ) -> Sequence[WebhookDelivery]:
        """Newest first, one more than `limit` when another page follows."""
        statement = select(WebhookDelivery).where(self._own())
        if status is not None:
            statement = statement.where(WebhookDelivery.status == status)
        if event_type is not None:
            statement = statement.where(WebhookDelivery.event_type == event_type)
        rows = await self._db.scalars(
            after(
                statement,
                (WebhookDelivery.create_time, WebhookDelivery.delivery_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def repeat(self, delivery: WebhookDelivery) -> WebhookDelivery:
        """Store a new delivery of the same event, due at once."""
        repeated = WebhookDelivery(
            tenant_id=self._tenant_id,
            delivery_id=new_id("dlv"),
            webhook_id=self.webhook_id,
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            payload=delivery.payload,
            user_id=delivery.user_id,
        )
        self._db.add(repeated)
        await self._db.flush()
        await self._db.refresh(repeated)
        return repeated

    async def claim(self, now: datetime, *, lost_at: datetime) -> ClaimedDelivery | None:
        """Claim the next due delivery and count its attempt; None when nothing is due.

        Deliveries without an attempt come in the order of their creation. Concurrent callers
        claim different ones. A delivery that is not closed is due again at `lost_at`. A webhook
        that is disabled or paused has nothing due.
        """
        due = (
            select(WebhookDelivery.delivery_id)
            .where(
                self._own(),
                WebhookDelivery.status == "pending",
                WebhookDelivery.next_attempt_at <= now,
            )
            .order_by(WebhookDelivery.next_attempt_at, WebhookDelivery.delivery_id)
            .limit(1)
            .with_for_update(skip_locked=True)
            .scalar_subquery()
        )
        rows = await self._db.execute(
            update(WebhookDelivery)
            .where(
                self._own(),
                WebhookDelivery.delivery_id == due,
                Webhook.tenant_id == self._tenant_id,
                Webhook.webhook_id == WebhookDelivery.webhook_id,
                Webhook.enabled,
                or_(Webhook.paused_until.is_(None), Webhook.paused_until <= now),
            )
            .values(
                attempts=WebhookDelivery.attempts + 1, attempted_at=now, next_attempt_at=lost_at
            )
            .returning(
                WebhookDelivery.delivery_id,
                WebhookDelivery.event_id,
                WebhookDelivery.payload,
                WebhookDelivery.attempts,
                Webhook.url,
                Webhook.secret,
                case((Webhook.old_secret_expires_at > now, Webhook.old_secret)),
                Webhook.failures > 0,
            )
            .execution_options(synchronize_session=False)
        )
        row = rows.one_or_none()
        return None if row is None else ClaimedDelivery(*row)

    async def close(self, claimed: ClaimedDelivery, **values: Any) -> None:
        """Store the result of an attempt.

        A success always counts. A failure counts only from the last claim of the delivery:
        another worker may be sending it now.
        """
        statement = update(WebhookDelivery).where(
            self._own(),
            WebhookDelivery.delivery_id == claimed.delivery_id,
            WebhookDelivery.status == "pending",
        )
        if values["status"] != "delivered":
            statement = statement.where(WebhookDelivery.attempts == claimed.attempts)
        await self._db.execute(
            statement.values(**values).execution_options(synchronize_session=False)
        )
