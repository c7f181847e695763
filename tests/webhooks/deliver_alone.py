"""A deliverer in a process of its own, for a test to kill; DSN, tenant, webhook and key are its
arguments."""

import asyncio
import ssl
import sys
from datetime import UTC, datetime

import app.governance.tables  # noqa: F401 (foreign keys lead to tables of other packages)
from app.governance.webhooks.delivery import Deliverer
from app.governance.webhooks.sender import SecretBox
from app.governance.webhooks.targets import Targets
from app.platform.database.engine import open_database


async def main() -> None:
    dsn, tenant_id, webhook_id, secret_key = sys.argv[1:]
    async with open_database(dsn, pool_size=2, statement_timeout_seconds=30) as database:
        deliverer = Deliverer(
            database,
            Targets(private=True),
            SecretBox([secret_key]),
            ssl.create_default_context(),
            lambda: datetime.now(UTC),
        )
        await deliverer.deliver(tenant_id, webhook_id)


asyncio.run(main())
