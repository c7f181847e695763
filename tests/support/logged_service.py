"""The service and a worker in a process of their own, whose standard error a test reads.

Loggers keep the level they were first used with, and the tests of one process want another.
Takes requests as JSON on standard input, prints the answers as JSON. One route is added
that fails as a database does: with a message that quotes what it was given.
"""

import asyncio
import json
import sys
from typing import Any

from asgi_lifespan import LifespanManager
from fastapi import Request
from httpx import ASGITransport, AsyncClient
from sqlalchemy import text

from app.main import create_app
from app.platform.observability.logging import configure_logging
from app.runtime import Runtime, open_runtime
from app.worker import working
from tests.support.patience import PATIENCE
from tests.support.service import settings_of


async def stumble(request: Request) -> None:
    """PostgreSQL answers: invalid input syntax for type integer: "<the body>"."""
    said = (await request.body()).decode()
    async with request.state.services.runtime.database.begin("anybody") as db:
        await db.execute(text("SELECT CAST(CAST(:said AS text) AS integer)"), {"said": said})


async def stumble_alone(request: Request) -> None:
    raise LookupError((await request.body()).decode())


BUSY = """
SELECT (
    SELECT count(*) FROM jobs
    WHERE status = 'running' OR status = 'pending' AND due_at <= now()
) + (
    SELECT count(*) FROM webhook_deliveries d JOIN webhooks w USING (tenant_id, webhook_id)
    WHERE d.status = 'pending' AND d.next_attempt_at <= now() AND w.paused_until IS NULL
) AS left
"""


async def idle(runtime: Runtime) -> None:
    """Wait until the worker has nothing to do right now."""
    async with asyncio.timeout(PATIENCE):
        while (await runtime.database.look_up(BUSY))[0]["left"]:  # noqa: ASYNC110 (PostgreSQL knows)
            await asyncio.sleep(0.05)


async def main() -> None:
    told: dict[str, Any] = json.load(sys.stdin)
    configure_logging("debug")
    dsn, settings = told["dsn"], settings_of(webhook_private_targets=True)
    app = create_app(open_runtime(settings, dsn))
    app.add_api_route("/v1/stumble", stumble, methods=["POST"])
    app.add_api_route("/v1/stumble-alone", stumble_alone, methods=["POST"])
    answers = []
    async with (
        LifespanManager(app, startup_timeout=PATIENCE, shutdown_timeout=PATIENCE) as manager,
        open_runtime(settings, dsn) as runtime,
        working(runtime, dsn),
    ):
        transport = ASGITransport(manager.app, raise_app_exceptions=False)
        async with AsyncClient(transport=transport, base_url="http://test") as client:
            for request in told["requests"]:
                answer = await client.request(**request)
                answers.append(
                    {
                        "status": answer.status_code,
                        "request_id": answer.headers["x-request-id"],
                        "body": answer.text,
                    }
                )
            await idle(runtime)
    json.dump(answers, sys.stdout)


asyncio.run(main())
