"""Where the time of one search goes: each part timed alone inside one process.

Every part runs alone, again and again, so CPU time is exact and nothing is instrumented. The
difference between the whole request and the sum of the parts is the framework's.
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

from app.builders.factory import Factory
from app.language.ranking.boosts import Boosts
from app.language.ranking.features import bucket_statistics, coverage, features_of
from app.language.ranking.fusion import fuse
from app.language.ranking.query import ParsedQuery, parse_query
from app.language.ranking.records import read_records
from app.main import create_app
from app.memory.memories.hybrid import Ranking, RankingRules, RankWeights, ranked
from app.memory.memories.search_schemas import SearchRequest
from app.memory.memories.search_service import SearchService
from app.memory.memories.search_sql import (
    SearchPlan,
    features_statement,
    hits_statement,
    search_statement,
)
from app.platform.observability.logging import configure_logging
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from benchmarks.database import TENANT
from benchmarks.processes import DSN, child

PARTS = 20
PART_SECONDS = 0.05
LONGEST_PART = 60
"""A part is as many calls as take so long, at most so many."""

WHOLE = "whole request"
SERVICE = "search service, with all it calls"

Piece = Callable[[], Awaitable[object]]


async def _timed(piece: Piece) -> dict[str, float]:
    """Microseconds of wall and of CPU per call, of the part that was least disturbed."""
    for _ in range(10):
        await piece()
    began = time.perf_counter()
    for _ in range(5):
        await piece()
    one = (time.perf_counter() - began) / 5
    repeats = max(1, min(LONGEST_PART, int(PART_SECONDS / one)))
    walls, busy = [], []
    for _ in range(PARTS):
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(repeats):
            await piece()
        walls.append((time.perf_counter() - wall) / repeats)
        busy.append((time.process_time() - cpu) / repeats)
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
            "server": ("127.0.0.1", 80), "state": {"services": Factory(runtime)},
        }  # fmt: skip
        await app(scope, receive, send)

    return piece


async def _pieces(runtime: Runtime, app: Any, key: str, job: dict[str, str]) -> dict[str, Piece]:
    body = {"query": job["query"], "user_id": job["user_id"], "limit": 10, "mode": job["mode"]}
    content = json.dumps(body).encode()
    principal = await runtime.identification.identify(key)
    request = SearchRequest.model_validate_json(content)
    searching = Factory(runtime).get(SearchService)
    plan = await searching._plan(principal, request)  # noqa: SLF001 (a piece of its own)
    answer = await searching.search(principal, request)
    log = structlog.get_logger()
    texts = [request.query, *(plan.asked.ranked_texts if plan.asked else ())]

    async def validate() -> None:
        SearchRequest.model_validate(json.loads(content))

    async def encode() -> None:
        to_json(answer)

    async def logged() -> None:
        log.info("request_served", method="POST", route="/x", status=200, milliseconds=1.25)

    finding = _by_vectors(runtime, plan)
    if plan.asked is not None:
        finding = await _by_all(runtime, plan, plan.asked, request.query)
    return {
        WHOLE: _request(app, runtime, key, content),
        "key look-up (round trip)": lambda: runtime.identification.identify(key),
        "body parsed and validated": validate,
        "query embedded": lambda: runtime.embedders.for_query(principal, texts, required=True),
        **finding,
        "hits as JSON": encode,
        "log line": logged,
        SERVICE: lambda: searching.search(principal, request),
    }


def _by_vectors(runtime: Runtime, plan: SearchPlan) -> dict[str, Piece]:
    text, values = search_statement(plan)

    async def sql() -> None:
        search_statement(plan)

    return {
        "statement built": sql,
        "search statement (round trip)": lambda: runtime.database.fetch(TENANT, text, *values),
    }


async def _by_all(
    runtime: Runtime, plan: SearchPlan, asked: ParsedQuery, query: str
) -> dict[str, Piece]:
    """The two statements, and each step of the ranking between them."""
    text, values, columns = features_statement(plan, asked)
    [seen] = await runtime.database.fetch(TENANT, text, *values)
    ids = seen["ids"]
    records = read_records(seen["records"], columns)
    features = features_of(ids, records, asked.packed)
    bucket = bucket_statistics(features)
    cut = RankingRules(plan.mode, None, rerank=True, limit=plan.limit)
    how = Ranking(asked, Boosts(), RankWeights(), cut)
    best = ranked(ids, records, how)
    fetching, chosen = hits_statement(plan, [one.memory_id for one in best])
    steps: dict[str, Callable[[], object]] = {
        "query read": lambda: parse_query(query, runtime.now()),
        "first statement built": lambda: features_statement(plan, asked),
        "  bytes to records": lambda: read_records(seen["records"], columns),
        "  records to features": lambda: features_of(ids, records, asked.packed),
        "  statistics of the bucket": lambda: bucket_statistics(features),
        "  fusion": lambda: fuse(features, bucket, asked.traits, how.boosts),
        "  lexical coverage": lambda: coverage(features, bucket, asked.traits),
        "ranking, with the indented": lambda: ranked(ids, records, how),
    }
    return {
        **{name: _awaited(step) for name, step in steps.items()},
        "first statement (round trip)": lambda: runtime.database.fetch(TENANT, text, *values),
        "second statement (round trip)": lambda: runtime.database.fetch(TENANT, fetching, *chosen),
    }


def _awaited(step: Callable[[], object]) -> Piece:
    async def piece() -> None:
        step()

    return piece


async def _measure(dsn: str, job: dict[str, str]) -> dict[str, dict[str, float]]:
    configure_logging("info")
    settings = Settings(_env_file=None)
    async with open_runtime(settings, dsn) as runtime:
        app = create_app(open_runtime(settings, dsn))
        pieces = await _pieces(runtime, app, job["key"], job)
        return {name: await _timed(piece) for name, piece in pieces.items()}


async def measure(
    dsn: str, key: str, user_id: str, query: str, *, mode: str
) -> dict[str, dict[str, float]]:
    """By piece, microseconds of wall and of CPU in the service."""
    async with child("breakdown", dsn=dsn, quiet=True) as process:
        timed: dict[str, dict[str, float]] = await process.ask(
            {"key": key, "user_id": user_id, "query": query, "mode": mode}
        )
        return timed


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_measure(os.environ[DSN], json.loads(sys.stdin.readline())))))
