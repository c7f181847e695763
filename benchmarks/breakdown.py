"""Where the time of one search goes: the pieces timed one by one inside one process.

Every piece runs alone, again and again, so CPU time is exact and nothing is instrumented.
What is left when the pieces are taken from the whole is the framework's.
"""

import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
import uvloop
from pydantic_core import to_json

from app.main import create_app
from app.memories.search_schemas import SearchRequest
from app.memories.search_sql import search_statement
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from app.web.logging import configure_logging
from benchmarks.processes import DSN, child

REPEATS = 60
PARTS = 20

Piece = Callable[[], Awaitable[object]]


async def _timed(piece: Piece) -> dict[str, float]:
    """Microseconds of wall and of CPU per call, of the part that was least disturbed."""
    for _ in range(50):
        await piece()
    walls, busy = [], []
    for _ in range(PARTS):
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(REPEATS):
            await piece()
        walls.append((time.perf_counter() - wall) / REPEATS)
        busy.append((time.process_time() - cpu) / REPEATS)
    return {"wall_us": min(walls) * 1e6, "cpu_us": min(busy) * 1e6}


def _request(app: Any, runtime: Runtime, key: str, content: bytes) -> Piece:
    """A whole request through the application, without socket and parser."""
    headers = [
        (b"host", b"127.0.0.1"),
        (b"authorization", f"Bearer {key}".encode()),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
    ]

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200

    async def piece() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
            "scheme": "http", "path": "/v1/memories/search", "raw_path": b"/v1/memories/search",
            "query_string": b"", "root_path": "", "headers": headers, "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80), "state": {"runtime": runtime},
        }  # fmt: skip
        await app(scope, receive, send)

    return piece


async def _pieces(runtime: Runtime, app: Any, key: str, user_id: str, query: str) -> dict[str, Any]:
    content = json.dumps({"query": query, "user_id": user_id, "limit": 10}).encode()
    principal = await runtime.identification.identify(key)
    body = SearchRequest.model_validate_json(content)
    plan = await runtime.search._plan(principal, body)  # noqa: SLF001 (a piece of its own)
    text, values = search_statement(plan)
    answer = await runtime.search.search(principal, body)
    log = structlog.get_logger()

    async def validate() -> None:
        SearchRequest.model_validate(json.loads(content))

    async def sql() -> None:
        search_statement(plan)

    async def encode() -> None:
        to_json(answer)

    async def logged() -> None:
        log.info("request_served", method="POST", route="/x", status=200, milliseconds=1.25)

    return {
        "whole request": _request(app, runtime, key, content),
        "key look-up (round trip)": lambda: runtime.identification.identify(key),
        "body parsed and validated": validate,
        "query embedded": lambda: runtime.embedders.for_query(principal, query),
        "statement built": sql,
        "search statement (round trip)": lambda: runtime.database.fetch(
            principal.tenant_id, text, *values
        ),
        "hits as JSON": encode,
        "log line": logged,
        "search service, with all it calls": lambda: runtime.search.search(principal, body),
    }


async def _measure(dsn: str, job: dict[str, str]) -> dict[str, dict[str, float]]:
    configure_logging("info")
    settings = Settings(_env_file=None)
    async with open_runtime(settings, dsn) as runtime:
        app = create_app(open_runtime(settings, dsn))
        pieces = await _pieces(runtime, app, job["key"], job["user_id"], job["query"])
        return {name: await _timed(piece) for name, piece in pieces.items()}


async def measure(
    dsn: str, key: str, queries: list[tuple[str, str]]
) -> dict[str, dict[str, float]]:
    """By piece, microseconds of wall and of CPU in the service; a user of 100 memories."""
    user_id, query = queries[1]
    async with child("breakdown", dsn=dsn, quiet=True) as process:
        timed: dict[str, dict[str, float]] = await process.ask(
            {"key": key, "user_id": user_id, "query": query}
        )
        return timed


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_measure(os.environ[DSN], json.loads(sys.stdin.readline())))))
