"""SQL that stores deliveries for webhooks, in the transaction of the change."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from app.platform.database.base import new_id
from app.platform.database.engine import driver_of
from app.platform.outbox.models import EVERY_TYPE, Event

# Webhooks are locked as the foreign key would do it later: one that is being deleted is
# then left out here, where the key would fail the change itself.
_SUBSCRIBED = """
SELECT webhooks.webhook_id, webhooks.events, now() AS now FROM webhooks
WHERE webhooks.tenant_id = $1 AND webhooks.enabled {only}
ORDER BY webhooks.webhook_id FOR KEY SHARE
"""

SUBSCRIBED: Final = _SUBSCRIBED.format(only="")
"""Enabled webhooks of the tenant `$1`, for a statement that reads more at the same time."""

_NAMED = _SUBSCRIBED.format(only="AND webhooks.webhook_id = $2")

_COLUMNS = ("delivery_id", "webhook_id", "event_id", "event_type", "payload", "user_id")

_INSERT = f"""
INSERT INTO webhook_deliveries (tenant_id, {", ".join(_COLUMNS)})
SELECT CAST($1 AS text), delivery_id, webhook_id, event_id, event_type, CAST(payload AS jsonb),
    user_id
FROM unnest(CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS text[]),
    CAST($6 AS text[]), CAST($7 AS text[])) AS pending({", ".join(_COLUMNS)})
"""


class Subscription(NamedTuple):
    """An enabled webhook, locked against deletion, and the types of events that it wants."""

    webhook_id: str
    events: Sequence[str]

    def wants(self, event: Event) -> bool:
        return event.type in self.events or EVERY_TYPE in self.events


class OutboxRepository:
    """Deliveries to be sent for one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def publish(self, events: Sequence[Event]) -> int:
        """Store a delivery of each event for every enabled webhook that wants its type; how many.

        One statement when there is no webhook, two otherwise. Nothing is sent before the caller's
        transaction commits, and nothing when it rolls back.
        """
        if not events:
            return 0
        rows = await (await driver_of(self._db)).fetch(SUBSCRIBED, self._tenant_id)
        if not rows:
            return 0
        subscriptions = [Subscription(row["webhook_id"], row["events"]) for row in rows]
        return await self.publish_among(subscriptions, events, rows[0]["now"])

    async def publish_among(
        self, subscriptions: Sequence[Subscription], events: Sequence[Event], now: datetime
    ) -> int:
        """As `publish`, where the webhooks were read before in this transaction.

        Args:
            subscriptions: what `SUBSCRIBED` gives.
            now: when the transaction began.

        """
        rows = []
        for event in events:
            wanting = [
                subscription.webhook_id
                for subscription in subscriptions
                if subscription.wants(event)
            ]
            rows += _deliveries(event, wanting, now)
        await self._store(rows)
        return len(rows)

    async def publish_to(self, webhook_id: str, event: Event) -> str | None:
        """Store a delivery of `event` for one webhook, whatever types it wants; its id.

        None when there is no such webhook, or it is disabled.
        """
        driver = await driver_of(self._db)
        row = await driver.fetchrow(_NAMED, self._tenant_id, webhook_id)
        if row is None:
            return None
        [delivery] = _deliveries(event, [webhook_id], row["now"])
        await self._store([delivery])
        return str(delivery[0])

    async def _store(self, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            columns = map(list, zip(*rows, strict=True))
            await (await driver_of(self._db)).execute(_INSERT, self._tenant_id, *columns)


def _deliveries(event: Event, webhook_ids: Sequence[str], now: datetime) -> list[tuple[Any, ...]]:
    """Rows of `webhook_deliveries`, one for each webhook, as `_COLUMNS` names them.

    A delivery's id sorts as its event's, so that events of one transaction are sent in their
    order.
    """
    event_id = new_id("evt")
    serial = event_id.removeprefix("evt_")
    return [
        (
            f"dlv_{serial}_{number}",
            webhook_id,
            event_id,
            event.type,
            json.dumps(
                {
                    "id": event_id,
                    "type": event.type,
                    "data": dict(event.data),
                    "create_time": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                }
            ),
            event.user_id,
        )
        for number, webhook_id in enumerate(webhook_ids, start=1)
    ]
