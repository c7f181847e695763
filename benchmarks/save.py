"""Saving with `infer=false` beside raw INSERT: `python -m benchmarks.save [--quick] [--out F]`.

Both write the same sentences into the same table with the same indexes and
`synchronous_commit=on`. A save also checks the key, judges by the gate, looks for
duplicates, embeds, and keeps a verdict and a history row: three rows for one.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asyncpg
import psutil
from pgvector.asyncpg import register_vector

from benchmarks.corpus import sentences
from benchmarks.database import COLUMNS, Cluster, add_users, open_cluster, records
from benchmarks.processes import Child, Measured, Server, child, fire, median, post, server
from benchmarks.publishing import publish

BATCH = 100
PER_USER = 1_000
"""So many memories has each user in the end; nearness is looked for among them."""


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int = 5
    single: int = 200
    lists: int = 10
    bulk: int = 100_000


QUICK = Effort(rounds=2, single=150, lists=5, bulk=10_000)


class Supply:
    """Sentences that nobody has said yet, for users that exist."""

    def __init__(self) -> None:
        texts = sentences(11) + sentences(12)
        # A number of its own keeps each from being a duplicate of another.
        self._texts = (f"{text}, entry {1000 + place}" for place, text in enumerate(texts))
        self._taken = 0

    def take(self, number: int) -> list[tuple[str, str]]:
        """Pairs of user and text."""
        pairs = []
        for _ in range(number):
            pairs.append((f"writer{self._taken // PER_USER % 200}", next(self._texts)))
            self._taken += 1
        return pairs

    def spread(self, number: int) -> list[tuple[str, str]]:
        """As `take`, each for another user than the one before."""
        return [(f"single{n % 50}", text) for n, (_, text) in enumerate(self.take(number))]


def body(pairs: Sequence[tuple[str, str]], on_duplicate: str) -> dict[str, Any]:
    texts: Any = [{"content": text} for _, text in pairs]
    return {
        "messages": texts if len(pairs) > 1 else pairs[0][1],
        "user_id": pairs[0][0],
        "infer": False,
        "on_duplicate": on_duplicate,
    }


def lists_of(pairs: Sequence[tuple[str, str]], size: int) -> list[Sequence[tuple[str, str]]]:
    return [pairs[start : start + size] for start in range(0, len(pairs), size)]


@dataclass(frozen=True, slots=True)
class Saving:
    """What is up while saving is measured."""

    cluster: Cluster
    load: Child
    kemem: Server
    supply: Supply

    async def kemem_rows(
        self, groups: Sequence[Sequence[tuple[str, str]]], callers: int, on_duplicate: str
    ) -> Measured:
        """Every group saved once, as one request."""
        requests = [
            post("/v1/memories", body(group, on_duplicate), self.cluster.key) for group in groups
        ]
        return await fire(self.load, self.kemem, requests, callers=callers, seconds=600, once=True)

    async def raw_rows(self, groups: Sequence[Sequence[tuple[str, str]]], callers: int) -> float:
        """Statements per second of INSERT, one group per statement."""
        prepared = [
            await records([user for user, _ in group], [text for _, text in group], 1)
            for group in groups
        ]
        waiting = iter(prepared)
        async with asyncpg.create_pool(
            self.cluster.owner_dsn, min_size=callers, max_size=callers, init=register_vector
        ) as pool:

            async def caller() -> None:
                async with pool.acquire() as connection:
                    for rows in waiting:
                        await connection.execute(
                            _insert(len(rows)), *(value for row in rows for value in row)
                        )

            began = time.perf_counter()
            await asyncio.gather(*(caller() for _ in range(callers)))
            return len(prepared) / (time.perf_counter() - began)


def _insert(rows: int) -> str:
    width = len(COLUMNS)
    values = ", ".join(
        "(" + ", ".join(f"${row * width + place + 1}" for place in range(width)) + ")"
        for row in range(rows)
    )
    return f"INSERT INTO memories ({', '.join(COLUMNS)}) VALUES {values}"


async def singles(saving: Saving, effort: Effort, callers: int) -> dict[str, Any]:
    """One memory per request, in turn with one row per INSERT."""
    ours, raw = [], []
    for _ in range(effort.rounds):
        pairs = lists_of(saving.supply.spread(effort.single), 1)
        ours.append(await saving.kemem_rows(pairs, callers, "reject"))
        raw.append(await saving.raw_rows(lists_of(saving.supply.spread(effort.single), 1), callers))
    return _row(ours, raw, 1)


async def batches(
    saving: Saving, effort: Effort, callers: int, on_duplicate: str
) -> dict[str, Any]:
    """A hundred memories per request, in turn with a hundred rows per INSERT."""
    ours, raw = [], []
    for _ in range(effort.rounds):
        number = effort.lists * BATCH
        ours.append(
            await saving.kemem_rows(
                lists_of(saving.supply.take(number), BATCH), callers, on_duplicate
            )
        )
        raw.append(await saving.raw_rows(lists_of(saving.supply.take(number), BATCH), callers))
    return _row(ours, raw, BATCH)


def _row(ours: list[Measured], raw: list[float], rows: int) -> dict[str, Any]:
    shares = sorted(one.per_second / other for one, other in zip(ours, raw, strict=True))
    middle = median(ours)
    return {
        "rows_per_second": middle.per_second * rows,
        "raw_rows_per_second": sorted(raw)[len(raw) // 2] * rows,
        "share": shares[len(shares) // 2],
        **asdict(middle),
    }


async def bulk(saving: Saving, effort: Effort) -> dict[str, Any]:
    """Memory of the service before and after many rows were saved in lists."""
    process = psutil.Process(saving.kemem.child.usage.pid)
    before = process.memory_info().rss
    began = time.perf_counter()
    texts = [f"{text}, noted {place}" for place, text in enumerate(sentences(13)[: effort.bulk])]
    pairs = [(f"bulk{place // PER_USER}", text) for place, text in enumerate(texts)]
    await saving.kemem_rows(lists_of(pairs, BATCH), 4, "allow")
    return {
        "rows": effort.bulk,
        "rows_per_second": effort.bulk / (time.perf_counter() - began),
        "rss_before_mb": before / 1e6,
        "rss_after_mb": process.memory_info().rss / 1e6,
    }


async def measure_all(effort: Effort) -> dict[str, Any]:
    async with open_cluster() as cluster:
        owner = await asyncpg.connect(cluster.owner_dsn)
        for kind, number in (("single", 50), ("writer", 200), ("bulk", 100)):
            await add_users(owner, [f"{kind}{n}" for n in range(number)])
        await owner.close()
        async with child("load") as load, server("service", dsn=cluster.dsn) as kemem:
            saving = Saving(cluster, load, kemem, Supply())
            await saving.kemem_rows(lists_of(saving.supply.spread(100), 1), 8, "reject")
            return {
                "effort": asdict(effort),
                "memory": await bulk(saving, effort),
                "saves": {
                    "one memory, 1 caller": await singles(saving, effort, 1),
                    "one memory, 8 callers": await singles(saving, effort, 8),
                    "one memory, 16 callers": await singles(saving, effort, 16),
                    "lists of 100, allow, 1 caller": await batches(saving, effort, 1, "allow"),
                    "lists of 100, allow, 4 callers": await batches(saving, effort, 4, "allow"),
                    "lists of 100, reject, 1 caller": await batches(saving, effort, 1, "reject"),
                },
            }


def markdown(result: dict[str, Any]) -> str:
    memory = result["memory"]
    lines = [
        "# Saving over HTTP",
        "",
        "`infer=false`, in turn with raw INSERT of the same kind of rows into the same table "
        "(one row, or a hundred, per statement), `synchronous_commit=on`; medians. Near "
        "duplicates are looked for with `reject`; single saves reject.",
        "",
        "| saves | rows/s | raw INSERT rows/s | share | p50 ms | p95 ms | CPU ms per request |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {name} | {one['rows_per_second']:,.0f} | {one['raw_rows_per_second']:,.0f} "
        f"| {one['share']:.2f} | {one['p50_ms']:.1f} | {one['p95_ms']:.1f} "
        f"| {one['server_cpu_ms']:.1f} |"
        for name, one in result["saves"].items()
    ]
    return "\n".join(
        [
            *lines,
            "",
            f"{memory['rows']:,} memories in lists of 100 by 4 callers: "
            f"{memory['rows_per_second']:,.0f} rows/s; the service's memory went from "
            f"{memory['rss_before_mb']:.0f} to {memory['rss_after_mb']:.0f} MB.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, fewer rounds")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/save.json"))
    given = parser.parse_args()
    result = asyncio.run(measure_all(QUICK if given.quick else Effort()))
    publish(result, markdown(result), given.out)


if __name__ == "__main__":
    main()
