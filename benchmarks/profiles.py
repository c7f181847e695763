"""What deriving a profile costs: `python -m benchmarks.profiles [--quick] [--out F]`.

Profiles of users with 10, 100 and 1,000 memories are derived by rules, job after job, and read. Of
more than 400 memories a job reads 400. Measured in turn: the rules alone on memories that were read
before, and the job order that a save adds to its transaction, compared with a transaction that
writes nothing.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from app.identity.tenants.access import Access, Principal
from app.identity.usage.ledger import ModelLedger
from app.language.keyless.profile import RulesProfiler
from app.memory.memories.refreshes import derive_soon
from app.memory.profiles.derivation import DerivationSnapshot, ProfileDerivation
from app.memory.profiles.repository import MOST_KNOWN
from app.memory.profiles.service import ProfileService
from app.platform.jobs.repository import JobRepository
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from benchmarks.database import TENANT, fill, open_cluster
from benchmarks.publishing import publish

SIZES: Final = (10, 100, 1_000)


async def timed(call: Callable[[], Awaitable[Any]]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    await call()
    return (time.perf_counter() - start) * 1_000


async def measure(runtime: Runtime, rounds: int) -> dict[str, Any]:
    """Medians in milliseconds, by how many memories the user has."""
    principal = Principal(Access(TENANT), "", frozenset({"read", "write"}), {})
    deriving = ProfileDerivation(
        ModelLedger(runtime.database, runtime.quota, "profile", failure="profile_failed"),
        runtime.saving_rules.gate,
        runtime.now,
    )
    service = ProfileService(runtime.work, runtime.saving_rules.gate, auto_create=True)
    profiler = RulesProfiler()
    found: dict[str, Any] = {}
    for size in SIZES:
        user_id = f"user{size}"

        async def derive(user_id: str = user_id) -> None:
            async with runtime.database.begin(TENANT) as db:
                seen = await deriving.read(db, principal, ("user", user_id))
            changes = await deriving.derive(principal, seen, profiler)
            async with runtime.database.begin(TENANT) as db:
                await deriving.store(db, principal, seen, changes, profiler=profiler, job_id=None)

        async def read(user_id: str = user_id) -> None:
            await service.of_user(principal, user_id)

        async def order(user_id: str = user_id) -> None:
            async with runtime.database.begin(TENANT) as db:
                await JobRepository(db, TENANT).schedule(
                    derive_soon(("user", user_id), creator=None, changed=True)
                )

        async def nothing() -> None:
            async with runtime.database.begin(TENANT) as db:
                await db.execute(text("SELECT 1"))

        async with runtime.database.begin(TENANT) as db:
            held = await deriving.read(db, principal, ("user", user_id))

        async def alone(held: DerivationSnapshot = held) -> None:
            await deriving.derive(principal, held, profiler)

        first = await timed(derive)
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "again": derive, "rules": alone, "read": read, "order": order, "nothing": nothing
        }  # fmt: skip
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                times[name].append(await timed(call))
        medians = {f"{name}_ms": statistics.median(taken) for name, taken in times.items()}
        found[str(size)] = {
            "first_ms": first,
            "per_memory_us": medians["again_ms"] * 1_000 / min(size, MOST_KNOWN),
            **medians,
        }
    return found


async def run(rounds: int) -> dict[str, Any]:
    load = os.getloadavg()[0]
    async with open_cluster() as cluster:
        await fill(cluster, {f"user{size}": size for size in SIZES})
        settings = Settings(_env_file=None)
        async with open_runtime(settings, cluster.dsn) as runtime:
            sizes = await measure(runtime, rounds)
    return {"rounds": rounds, "load": [load, os.getloadavg()[0]], "sizes": sizes}


def markdown(result: dict[str, Any]) -> str:
    """What was measured, for people."""
    lines = [
        "# Profiles",
        "",
        "One profile derived by rules as a job does it: memories read, values found, changes "
        f"stored. Milliseconds, medians of {result['rounds']}. *Rules* is the finding alone, "
        "*order* what a save adds to its transaction, as a transaction of its own, beside one "
        "that writes nothing.",
        "",
        "| memories | first | again | µs per memory read | rules | read of a profile | order | "
        "nothing |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for size, one in result["sizes"].items():
        lines.append(
            f"| {int(size):,} | {one['first_ms']:.1f} | {one['again_ms']:.1f} | "
            f"{one['per_memory_us']:.0f} | {one['rules_ms']:.1f} | {one['read_ms']:.1f} | "
            f"{one['order_ms']:.1f} | {one['nothing_ms']:.1f} |"
        )
    before, after = result["load"]
    lines += ["", f"Load of the machine: {before:.1f} before, {after:.1f} at the end.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/profiles.json"))
    given = parser.parse_args()
    found = asyncio.run(run(5 if given.quick else 30))
    publish(found, markdown(found), given.out)


if __name__ == "__main__":
    main()
