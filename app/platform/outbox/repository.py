"""SQL that writes down what webhooks are to be told, in the transaction of the change."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Text, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.platform.database.ids import new_id
from app.platform.outbox.events import EVERY_TYPE, Event

# Webhooks are locked as the foreign key would do it a moment later: one that is being deleted
# is then left out here, where the key would fail the change that is told of. A delivery's id
# sorts as its event's, so that events of one transaction are told in the order they were in.
_PUBLISH = text(f"""
WITH wanting AS (
    SELECT webhook_id, events FROM webhooks
    WHERE tenant_id = :tenant_id AND enabled AND webhook_id = coalesce(:webhook_id, webhook_id)
    FOR KEY SHARE
)
INSERT INTO webhook_deliveries
    (tenant_id, delivery_id, webhook_id, event_id, event_type, payload, user_id)
SELECT :tenant_id,
    'dlv_' || substr(event_id, 5) || '_'
        || row_number() OVER (PARTITION BY event_id ORDER BY webhook_id),
    webhook_id, event_id, event_type,
    jsonb_build_object(
        'id', event_id, 'type', event_type, 'data', CAST(data AS jsonb),
        'create_time', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ),
    user_id
FROM wanting CROSS JOIN unnest(:event_ids, :event_types, :data, :user_ids)
    AS told(event_id, event_type, data, user_id)
WHERE :webhook_id IS NOT NULL OR events && CAST(ARRAY[event_type, '{EVERY_TYPE}'] AS varchar[])
RETURNING delivery_id
""").bindparams(
    bindparam("tenant_id", type_=Text),
    bindparam("webhook_id", type_=Text),
    *(
        bindparam(name, type_=ARRAY(Text))
        for name in ("event_ids", "event_types", "data", "user_ids")
    ),
)


class OutboxRepository:
    """What is to be told of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def publish(self, events: Sequence[Event]) -> int:
        """Owe each event to every enabled webhook that wants its type; how many are owed.

        One statement, and no row when nobody listens. Nothing is sent before the caller's
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
        values: dict[str, Any] = {
            "tenant_id": self._tenant_id,
            "webhook_id": webhook_id,
            "event_ids": [new_id("evt") for _ in events],
            "event_types": [event.type for event in events],
            "data": [json.dumps(dict(event.data)) for event in events],
            "user_ids": [event.user_id for event in events],
        }
        return (await self._db.scalars(_PUBLISH, values)).all()
