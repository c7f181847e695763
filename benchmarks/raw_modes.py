"""The statements of a search alone: `python -m benchmarks.raw_modes`.

The same pool, role and policies as in the service, the same texts and values; no HTTP, no key, no
ranking. It takes jobs as `load.py` does and answers in the same form.
"""

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass
from itertools import count
from typing import Any

import uvloop

from app.builders.factory import Factory
from app.language.ranking.boosts import Boosts
from app.memory.memories.candidate_search import by_all
from app.memory.memories.search_schemas import SearchRequest
from app.memory.memories.search_service import SearchService
from app.memory.memories.search_sql import features_statement, hits_statement, search_statement
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from benchmarks.database import TENANT
from benchmarks.processes import DSN

Statement = tuple[str, list[object]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The statements of one search, in order."""

    statements: list[Statement]


async def prepare(runtime: Runtime, key: str, body: dict[str, Any]) -> Prepared:
    principal = await runtime.identification.identify(key)
    request = SearchRequest.model_validate(body)
    plan = await Factory(runtime).get(SearchService)._plan(principal, request)  # noqa: SLF001 (a piece of its own)
    if plan.asked is None:
        return Prepared([search_statement(plan)])
    found = await by_all(runtime.database, TENANT, plan, plan.asked, Boosts())
    text, values, _ = features_statement(plan, plan.asked)
    chosen = [one.ranked.memory_id for one in found]
    return Prepared([(text, values), hits_statement(plan, chosen)])


async def run(runtime: Runtime, job: dict[str, Any], queries: list[Prepared]) -> dict[str, Any]:
    """Keep `callers` searches under way for `seconds`."""
    latencies: list[float] = []
    began = time.perf_counter()
    deadline = began + job["seconds"]
    numbers = count()

    async def caller() -> None:
        while (sent := time.perf_counter()) < deadline:
            for text, values in queries[next(numbers) % len(queries)].statements:
                await runtime.database.fetch(TENANT, text, *values)
            latencies.append(time.perf_counter() - sent)

    await asyncio.gather(*(caller() for _ in range(job["callers"])))
    return {"seconds": time.perf_counter() - began, "latencies": latencies, "client_share": 0.0}


async def answer_jobs(dsn: str) -> None:
    """Jobs that name `bodies` have their statements made first, once per `name`."""
    prepared: dict[str, list[Prepared]] = {}
    async with open_runtime(Settings(_env_file=None), dsn) as runtime:
        while line := await asyncio.to_thread(sys.stdin.readline):
            job = json.loads(line)
            name = job["name"]
            if name not in prepared:
                prepared[name] = [
                    await prepare(runtime, job["key"], body) for body in job["bodies"]
                ]
            print(json.dumps(await run(runtime, job, prepared[name])), flush=True)


if __name__ == "__main__":
    uvloop.run(answer_jobs(os.environ[DSN]))
