"""Rows per second of export and import: `python -m benchmarks.export [--quick] [--out F]`.

The client exports memories with their vectors over HTTP and imports them into another tenant. In
turn, COPY reads the same rows from the same table and writes them into a table with the same
columns and indexes: what PostgreSQL does without a service, checks and policies.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import asyncpg

from app.builders.factory import Factory
from app.identity.tenants.schemas import TenantCreate
from app.identity.tenants.service import TenantService
from app.runtime import open_runtime
from app.settings import Settings
from benchmarks.database import TENANT, Cluster, fill, open_cluster
from benchmarks.processes import server
from benchmarks.publishing import load_of, publish
from kemem import Memory

ROWS = 20_000
QUICK_ROWS = 2_000
ROUNDS = 3

Round = dict[str, float]


def exported(memory: Memory) -> list[bytes]:
    return list(memory.export())


async def timed(work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = await work()
    return time.perf_counter() - started, found


async def copied(owner: asyncpg.Connection, rows: int) -> Round:
    """Rows per second of COPY, out of the table and into one like it."""
    content = BytesIO()
    out, _ = await timed(
        lambda: owner.copy_from_query(
            "SELECT * FROM memories WHERE tenant_id = $1", TENANT, output=content, format="text"
        )
    )
    content.seek(0)
    await owner.execute("CREATE TABLE bare (LIKE memories INCLUDING ALL)")
    try:
        into, _ = await timed(lambda: owner.copy_to_table("bare", source=content, format="text"))
    finally:
        await owner.execute("DROP TABLE bare")
    return {"out": rows / out, "in": rows / into}


async def carried(address: str, key: str, other: str) -> tuple[Round, int, int]:
    """Rows per second of the client, how many rows there were, and how many bytes."""
    with Memory(address, key) as memory, Memory(address, other) as target:
        out, lines = await timed(lambda: asyncio.to_thread(exported, memory))
        rows = len(lines) - 2
        into, done = await timed(lambda: asyncio.to_thread(target.import_, lines))
    assert sum(done.inserted.values()) == rows
    return {"out": rows / out, "in": rows / into}, rows, sum(map(len, lines))


async def measure(rows: int) -> dict[str, Any]:
    found: dict[str, Any] = {"memories": rows, "load_before": os.getloadavg()[0]}
    rounds: dict[str, list[Round]] = {"KeMem": [], "COPY": []}
    async with open_cluster() as cluster, server("service", dsn=cluster.dsn) as served:
        await fill(cluster, {f"user-{number}": rows // 10 for number in range(10)})
        address = f"http://127.0.0.1:{served.port}"
        owner = await asyncpg.connect(cluster.owner_dsn)
        try:
            for other in await _tenants(cluster):
                told, found["rows"], found["bytes"] = await carried(address, cluster.key, other)
                rounds["KeMem"].append(told)
                rounds["COPY"].append(await copied(owner, rows))
        finally:
            await owner.close()
    for name, those in rounds.items():
        found[name] = {way: statistics.median(one[way] for one in those) for way in ("out", "in")}
    found["load_after"] = os.getloadavg()[0]
    return found


async def _tenants(cluster: Cluster) -> list[str]:
    """Keys of tenants to import into, one for each round."""
    async with open_runtime(Settings(_env_file=None), cluster.dsn) as runtime:
        tenants = Factory(runtime).get(TenantService)
        made = [
            await tenants.add(TenantCreate(tenant_name=f"Copy {number}"))
            for number in range(ROUNDS)
        ]
    return [str(one.key.key) for one in made]


def markdown(found: dict[str, Any]) -> str:
    ours, theirs = found["KeMem"], found["COPY"]
    lines = [
        "# Export and import",
        "",
        f"{found['rows']:,} rows, of which {found['memories']:,} memories with vectors, "
        f"{found['bytes']:,} bytes of JSON lines: the client takes them out over HTTP and puts "
        "them into another tenant. COPY does the same to the memories alone, as text, in the same "
        "run, out of the table and into one with the same indexes, with no service, no checks and "
        f"no policies. Median of {ROUNDS} rounds.",
        "",
        "| | KeMem rows/s | COPY rows/s | times slower |",
        "|:--|--:|--:|--:|",
    ]
    for way, name in (("out", "export"), ("in", "import")):
        lines.append(
            f"| {name} | {ours[way]:,.0f} | {theirs[way]:,.0f} | {theirs[way] / ours[way]:.1f} |"
        )
    lines += [
        "",
        f"{load_of(found)} Both had the same.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} memories")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/export.json"))
    given = parser.parse_args()
    found = asyncio.run(measure(QUICK_ROWS if given.quick else ROWS))
    publish(found, markdown(found), given.out)


if __name__ == "__main__":
    main()
