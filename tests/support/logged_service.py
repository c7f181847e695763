"""The service in a process of its own, whose standard error a test reads.

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
from app.runtime import open_runtime
from app.settings import Settings
from app.web.logging import configure_logging


async def stumble(request: Request) -> None:
    """PostgreSQL answers: invalid input syntax for type integer: "<the body>"."""
    said = (await request.body()).decode()
    async with request.state.runtime.database.begin("anybody") as db:
        await db.execute(text("SELECT CAST(CAST(:said AS text) AS integer)"), {"said": said})


async def stumble_alone(request: Request) -> None:
    raise LookupError((await request.body()).decode())


async def main() -> None:
    told: dict[str, Any] = json.load(sys.stdin)
    configure_logging("debug")
    app = create_app(open_runtime(Settings(_env_file=None), told["dsn"]))
    app.add_api_route("/v1/stumble", stumble, methods=["POST"])
    app.add_api_route("/v1/stumble-alone", stumble_alone, methods=["POST"])
    answers = []
    async with LifespanManager(app, startup_timeout=30, shutdown_timeout=30) as manager:
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
    json.dump(answers, sys.stdout)


asyncio.run(main())
