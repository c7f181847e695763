"""SQL that writes down what webhooks are to be told, in the transaction of the change."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Text, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.platform.database.base import new_id
from app.platform.outbox.events import EVERY_TYPE, Event

# Webhooks are locked as the foreign key would do it a moment later: one that is being deleted
# is then left out here, where the key would fail the change that is told of.
_WANTING = text("""
SELECT webhook_id, events, now() AS now FROM webhooks
WHERE tenant_id = :tenant_id AND enabled AND webhook_id = coalesce(:webhook_id, webhook_id)
ORDER BY webhook_id FOR KEY SHARE
""").bindparams(bindparam("tenant_id", type_=Text), bindparam("webhook_id", type_=Text))

_OWED = ("delivery_id", "webhook_id", "event_id", "event_type", "payload", "user_id")

_OWE = text(f"""
INSERT INTO webhook_deliveries (tenant_id, {", ".join(_OWED)})
SELECT :tenant_id, delivery_id, webhook_id, event_id, event_type, CAST(payload AS jsonb), user_id
FROM unnest({", ".join(f":{name}" for name in _OWED)}) AS owed({", ".join(_OWED)})
""").bindparams(
    bindparam("tenant_id", type_=Text),
    *(bindparam(name, type_=ARRAY(Text)) for name in _OWED),
)


class OutboxRepository:
    """What is to be told of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def publish(self, events: Sequence[Event]) -> int:
        """Owe each event to every enabled webhook that wants its type; how many are owed.

        One statement when nobody listens, two otherwise. Nothing is sent before the caller's
        transaction commits, and nothing at all when it does not.
        """
        return len(await self._tell(events, None)) if events else 0

    async def tell(self, webhook_id: str, event: Event) -> str | None:
        """Owe `event` to one webhook, whatever types it wants; the id of the delivery.

        None when there is no such webhook, or it is disabled.
        """
        owed = await self._tell([event], webhook_id)
        return owed[0] if owed else None

    async def _tell(self, events: Sequence[Event], webhook_id: str | None) -> Sequence[str]:
        """Owe the events to those that want them; ids of the deliveries."""
        values = {"tenant_id": self._tenant_id, "webhook_id": webhook_id}
        wanting = (await self._db.execute(_WANTING, values)).all()
        rows = [
            row
            for event in events
            for row in _deliveries(
                event,
                [
                    (one.webhook_id, one.now)
                    for one in wanting
                    if webhook_id is not None or {event.type, EVERY_TYPE} & {*one.events}
                ],
            )
        ]
        if rows:
            columns = dict(zip(_OWED, map(list, zip(*rows, strict=True)), strict=True))
            await self._db.execute(_OWE, {"tenant_id": self._tenant_id, **columns})
        return [row[0] for row in rows]


def _deliveries(event: Event, told: Sequence[tuple[str, datetime]]) -> list[tuple[Any, ...]]:
    """Rows of `webhook_deliveries`, one for each webhook, as `_OWED` names them.

    A delivery's id sorts as its event's, so that events of one transaction are told in the order
    they were in.
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
        for number, (webhook_id, now) in enumerate(told, start=1)
    ]
