"""One statement against a transaction for a hot read: `python -m benchmarks.hot_reads`.

Both ways of `Database.fetch` run the same two reads over the same pool size, in turns: a row by
its key, and the ten nearest of 1,000 memories.
"""

import asyncio
import statistics
import time

import numpy as np

from app.platform.database.engine import Database, open_database
from benchmarks.database import AGENT, TENANT, fill, open_cluster

SECONDS = 4.0
RUNS = 3
POOL_SIZE = 6
MEMORIES = 1_000
USER = "user"

BY_KEY = "SELECT agents.config FROM agents WHERE agents.tenant_id = tenant.id AND agent_id = $2"
NEAREST = """
SELECT m.memory_id, m.content, 1 - (m.embedding <=> $3) AS similarity FROM memories m
WHERE m.tenant_id = tenant.id AND m.scope_id = $2 AND m.scope = 'user' AND m.status = 'active'
ORDER BY m.embedding <=> $3 LIMIT 10
"""


async def rate(database: Database, read: str, callers: int) -> tuple[float, float]:
    """Reads per second, and the median of their milliseconds."""
    vector = np.random.default_rng(7).normal(size=256).astype(np.float32)
    statement, values = (BY_KEY, (AGENT,)) if read == "by key" else (NEAREST, (USER, vector))
    taken: list[float] = []
    deadline = time.perf_counter() + SECONDS

    async def caller() -> None:
        while (began := time.perf_counter()) < deadline:
            assert await database.fetch(TENANT, statement, *values)
            taken.append((time.perf_counter() - began) * 1_000)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return len(taken) / SECONDS, statistics.median(taken)


async def main() -> None:
    async with open_cluster() as cluster:
        await fill(cluster, {USER: MEMORIES})
        async with (
            open_database(cluster.dsn, pool_size=POOL_SIZE) as one,
            open_database(cluster.dsn, pool_size=POOL_SIZE, read_in_transactions=True) as three,
        ):
            for read in ("by key", "nearest"):
                for callers in (1, 16):
                    for run in range(RUNS):
                        for name, database in (("statement", one), ("transaction", three)):
                            reads, median = await rate(database, read, callers)
                            print(
                                f"{read:8} {callers:2} callers, run {run + 1}: {name:12}"
                                f"{reads:7.0f}/s {median:6.2f} ms",
                                flush=True,
                            )


if __name__ == "__main__":
    asyncio.run(main())
