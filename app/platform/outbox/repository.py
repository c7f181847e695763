"""SQL that stores deliveries for webhooks, in the transaction of the change."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Text, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.platform.database.base import new_id
from app.platform.outbox.events import EVERY_TYPE, Event

# Webhooks are locked as the foreign key would do it later: one that is being deleted is
# then left out here, where the key would fail the change itself.
_SUBSCRIBED = text("""
SELECT webhook_id, events, now() AS now FROM webhooks
WHERE tenant_id = :tenant_id AND enabled AND webhook_id = coalesce(:webhook_id, webhook_id)
ORDER BY webhook_id FOR KEY SHARE
""").bindparams(bindparam("tenant_id", type_=Text), bindparam("webhook_id", type_=Text))

_COLUMNS = ("delivery_id", "webhook_id", "event_id", "event_type", "payload", "user_id")

_INSERT = text(f"""
INSERT INTO webhook_deliveries (tenant_id, {", ".join(_COLUMNS)})
SELECT :tenant_id, delivery_id, webhook_id, event_id, event_type, CAST(payload AS jsonb), user_id
FROM unnest({", ".join(f":{name}" for name in _COLUMNS)}) AS pending({", ".join(_COLUMNS)})
""").bindparams(
    bindparam("tenant_id", type_=Text),
    *(bindparam(name, type_=ARRAY(Text)) for name in _COLUMNS),
)


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
        return len(await self._store(events, None)) if events else 0

    async def publish_to(self, webhook_id: str, event: Event) -> str | None:
        """Store a delivery of `event` for one webhook, whatever types it wants; its id.

        None when there is no such webhook, or it is disabled.
        """
        delivery_ids = await self._store([event], webhook_id)
        return delivery_ids[0] if delivery_ids else None

    async def _store(self, events: Sequence[Event], webhook_id: str | None) -> Sequence[str]:
        """Store the events for the webhooks that want them; ids of the deliveries."""
        values = {"tenant_id": self._tenant_id, "webhook_id": webhook_id}
        webhooks = (await self._db.execute(_SUBSCRIBED, values)).all()
        rows = [
            row
            for event in events
            for row in _deliveries(
                event,
                [
                    (webhook.webhook_id, webhook.now)
                    for webhook in webhooks
                    if webhook_id is not None or {event.type, EVERY_TYPE} & {*webhook.events}
                ],
            )
        ]
        if rows:
            columns = dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
            await self._db.execute(_INSERT, {"tenant_id": self._tenant_id, **columns})
        return [row[0] for row in rows]


def _deliveries(event: Event, webhooks: Sequence[tuple[str, datetime]]) -> list[tuple[Any, ...]]:
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
        for number, (webhook_id, now) in enumerate(webhooks, start=1)
    ]
