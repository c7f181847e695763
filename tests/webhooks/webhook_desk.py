"""A webhook of one tenant, a deliverer whose clock is the test's, and what is in the log."""

import ssl
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from httpx import AsyncClient
from prometheus_client import REGISTRY

from app.governance.webhooks.delivery import Deliverer, Timeouts
from app.governance.webhooks.sender import SecretBox
from app.governance.webhooks.targets import Targets, resolve
from app.platform.outbox.models import Event
from app.platform.outbox.repository import OutboxRepository
from app.runtime import Runtime
from tests.support.api import execute, ok
from tests.support.patience import PATIENCE
from tests.support.service import SECRET_KEY
from tests.support.tenants import Caller


class Clock:
    """The present, moved on by hand."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)
        self._stopped_at: datetime | None = None

    def __call__(self) -> datetime:
        return (self._stopped_at or datetime.now(UTC)) + self._ahead

    def stop(self) -> None:
        """From now on only `pass_by` moves it: what is computed from it is exact."""
        self._stopped_at = datetime.now(UTC)

    def pass_by(self, **time: float) -> None:
        self._ahead += timedelta(**time)


class Desk:
    """A webhook of one tenant, what happens there, and a deliverer."""

    def __init__(self, runtime: Runtime, dsn: str, owner: Caller, webhook: dict[str, Any]) -> None:
        self.runtime = runtime
        self.dsn = dsn
        self.tenant_id = owner.tenant_id
        self.webhook_id = webhook["webhook_id"]
        self.secret = webhook["secret"]
        self.clock = Clock()
        self._counted_before = counted()

    @property
    def counted(self) -> Counter[str]:
        """Attempts by outcome, as a scraper sees them, since the test began."""
        return counted() - self._counted_before

    def deliverer(self, **changes: Any) -> Deliverer:
        values = {
            "targets": Targets(private=True, resolver=resolve),
            "secrets": SecretBox([SECRET_KEY]),
            "trusted": ssl.create_default_context(),
            "now": self.clock,
            "timeouts": Timeouts(attempt=timedelta(seconds=PATIENCE)),
            "chance": lambda: 0.5,
        }
        return Deliverer(self.runtime.database, **(values | changes))

    async def publish(self, *events: Event) -> None:
        async with self.runtime.database.begin(self.tenant_id) as db:
            await OutboxRepository(db, self.tenant_id).publish(events)

    async def happen(self, count: int = 1, user_id: str | None = "ana") -> None:
        """`count` memories are added, one transaction each."""
        for number in range(count):
            data = {"memory_id": f"mem_{number}", "user_id": user_id, "version": 1}
            await self.publish(Event("memory.added", data, user_id))

    async def deliver(self, **changes: Any) -> dict[str, int]:
        return await self.deliverer(**changes).deliver(self.tenant_id, self.webhook_id)

    async def deliveries(self) -> list[dict[str, Any]]:
        """Rows of the log, oldest first."""
        rows = await execute(
            self.dsn,
            "SELECT * FROM webhook_deliveries WHERE tenant_id = $1 AND webhook_id = $2 "
            "ORDER BY create_time, delivery_id",
            self.tenant_id,
            self.webhook_id,
        )
        return [dict(row) for row in rows]

    async def delivery(self) -> dict[str, Any]:
        """The only row of the log."""
        [row] = await self.deliveries()
        return row

    async def webhook(self) -> dict[str, Any]:
        rows = await execute(
            self.dsn,
            "SELECT * FROM webhooks WHERE tenant_id = $1 AND webhook_id = $2",
            self.tenant_id,
            self.webhook_id,
        )
        return dict(rows[0])


def counted() -> Counter[str]:
    name = "kemem_webhook_deliveries_total"
    values = {
        outcome: REGISTRY.get_sample_value(name, {"outcome": outcome})
        for outcome in ("delivered", "failed", "dead")
    }
    return Counter({outcome: int(value) for outcome, value in values.items() if value})


async def make_webhook(client: AsyncClient, url: str, **fields: Any) -> dict[str, Any]:
    return ok(await client.post("/webhooks", json={"url": url} | fields), 201)
