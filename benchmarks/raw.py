"""Raw asyncpg without HTTP, one of the references: `python -m benchmarks.raw`.

It takes jobs as `load.py` does and answers in the same form; its callers are tasks over one pool.
"""

import asyncio
import json
import os
import sys
import time
from itertools import count
from typing import Any

import asyncpg
import numpy as np
import uvloop
from pgvector.asyncpg import register_vector

from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from benchmarks.database import TENANT
from benchmarks.processes import DSN
from benchmarks.references import WHOLE


async def run(
    pool: asyncpg.Pool, embedder: WordLlamaEmbedder, job: dict[str, Any]
) -> dict[str, Any]:
    """Keep `callers` statements under way for `seconds`."""
    queries = job["queries"]
    vectors = [np.asarray(one, np.float32) for one in job.get("vectors", ())]
    latencies: list[float] = []
    began = time.perf_counter()
    deadline = began + job["seconds"]
    numbers = count()

    async def caller() -> None:
        while (sent := time.perf_counter()) < deadline:
            number = next(numbers) % len(queries)
            user_id, text = queries[number]
            vector = vectors[number] if vectors else (await embedder.embed([text]))[0]
            await pool.fetch(WHOLE, TENANT, user_id, vector)
            latencies.append(time.perf_counter() - sent)

    await asyncio.gather(*(caller() for _ in range(job["callers"])))
    return {"seconds": time.perf_counter() - began, "latencies": latencies, "client_share": 0.0}


async def answer_jobs(dsn: str) -> None:
    embedder = WordLlamaEmbedder.load()
    async with asyncpg.create_pool(dsn, min_size=6, max_size=6, init=register_vector) as pool:
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await run(pool, embedder, json.loads(line))), flush=True)


if __name__ == "__main__":
    uvloop.run(answer_jobs(os.environ[DSN]))
