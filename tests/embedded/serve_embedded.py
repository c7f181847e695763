"""A service of its own process: says how to reach PostgreSQL, stops when its input ends."""

import asyncio
import json
import sys
from pathlib import Path

import structlog

from app.platform.embedded.server import EmbeddedPostgres


async def main() -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    async with EmbeddedPostgres(Path(sys.argv[1])) as postgres:
        print(json.dumps({"dsn": postgres.dsn, "postmaster": postgres.pid}), flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
