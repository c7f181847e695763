"""Search over HTTP compared with references: `python -m benchmarks.search [--quick]`.

Two comparisons: hybrid search with semantic search and with raw SQL (`search_modes.py`), and
semantic search with services that do nothing else. All subjects of a comparison answer the same
questions over the same rows in the same run, in turn, round after round; the figures are medians
over the rounds. Absolute figures depend on the machine; the ratios matter. `--locomo PATH` takes
the rows from LoCoMo.
"""

import argparse
import asyncio
import os
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg

from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.runtime import utc_now
from benchmarks import breakdown, search_modes, search_report
from benchmarks.corpus import questions
from benchmarks.database import Cluster, fill, open_cluster
from benchmarks.processes import Child, Measured, Server, child, fire, median, post, server, summary
from benchmarks.publishing import publish

SIZES = (100, 1_000, 10_000)
CALLERS = (1, 16)
QUESTIONS = 200
MODE = "semantic"
"""What the references do; hybrid search has no like among them."""

Round = Callable[[int, float], Awaitable[Measured]]
"""Measures one subject with that many callers for that many seconds."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is measured."""

    rows: int = 100_000
    rounds: int = 8
    seconds: float = 0.8


QUICK = Effort(rows=30_000, rounds=3, seconds=0.5)


def population(rows: int) -> dict[str, int]:
    """Users of 10,000, of 1,000 and of 100 memories, `rows` in all."""
    users = {"large0": 10_000} | {f"middle{n}": 1_000 for n in range(10)}
    if rows > 50_000:
        users |= {"large1": 10_000}
    small = (rows - sum(users.values())) // 100
    return users | {f"small{n}": 100 for n in range(small)}


def asked(users: Mapping[str, int], size: int) -> list[tuple[str, str]]:
    """Questions about users of that size, twenty of them in turn."""
    of_size = [user for user, number in users.items() if number == size][:20]
    texts = questions(size, QUESTIONS)
    return [(of_size[place % len(of_size)], text) for place, text in enumerate(texts)]


@dataclass(frozen=True, slots=True)
class Subjects:
    """Everything that is up at once; what is not asked costs nothing."""

    load: Child
    raw: Child
    asyncpg: Server
    orm: Server
    kemem: Server
    cluster: Cluster


@asynccontextmanager
async def open_subjects(cluster: Cluster) -> AsyncIterator[Subjects]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        yield Subjects(
            load=await enter(child("load")),
            raw=await enter(child("raw", dsn=cluster.owner_dsn)),
            asyncpg=await enter(server("references", "asyncpg", dsn=cluster.owner_dsn)),
            orm=await enter(server("references", "orm", dsn=cluster.owner_dsn)),
            kemem=await enter(server("service", dsn=cluster.dsn)),
            cluster=cluster,
        )


def rounds_of(subjects: Subjects, queries: list[tuple[str, str]], vectors: Any) -> dict[str, Round]:
    """What is measured, by name."""
    by_text = [{"user_id": user, "query": text} for user, text in queries]
    by_vector = [
        {"user_id": user, "vector": [round(float(one), 7) for one in vector]}
        for (user, _), vector in zip(queries, vectors, strict=True)
    ]

    def raw(given: Any) -> Round:
        async def measure(callers: int, seconds: float) -> Measured:
            before = subjects.raw.cpu_seconds()
            job = {"queries": queries, "vectors": given, "callers": callers, "seconds": seconds}
            answer = await subjects.raw.ask(job)
            return summary(answer, subjects.raw.cpu_seconds() - before)

        return measure

    def http(served: Server, requests: list[bytes]) -> Round:
        async def measure(callers: int, seconds: float) -> Measured:
            return await fire(subjects.load, served, requests, callers=callers, seconds=seconds)

        return measure

    search = [
        post("/v1/memories/search", one | {"limit": 10, "mode": MODE}, subjects.cluster.key)
        for one in by_text
    ]
    return {
        "raw_vector": raw([one["vector"] for one in by_vector]),
        "raw_text": raw([]),
        "asyncpg_vector": http(subjects.asyncpg, [post("/vector", one) for one in by_vector]),
        "asyncpg_text": http(subjects.asyncpg, [post("/text", one) for one in by_text]),
        "asyncpg_tuned": http(subjects.asyncpg, [post("/tuned", one) for one in by_text]),
        "asyncpg_lean": http(subjects.asyncpg, [post("/lean", one) for one in by_text]),
        "orm_vector": http(subjects.orm, [post("/vector", one) for one in by_vector]),
        "orm_text": http(subjects.orm, [post("/text", one) for one in by_text]),
        "kemem": http(subjects.kemem, search),
    }


async def in_turn(
    named: Mapping[str, Round], cluster: Cluster, callers: int, effort: Effort
) -> dict[str, list[Measured]]:
    """Round after round, every subject once per round."""
    kept: dict[str, list[Measured]] = {name: [] for name in named}
    for _ in range(effort.rounds):
        for name, measure in named.items():
            before = cluster.cpu_seconds()
            one = await measure(callers, effort.seconds)
            answered = one.per_second * effort.seconds
            spent = (cluster.cpu_seconds() - before) / answered * 1000
            # The ORM's pool closes connections, and their time goes with their processes.
            spent = 0.0 if name.startswith("orm") else spent
            kept[name].append(replace(one, database_cpu_ms=spent))
    return kept


async def measure_size(
    subjects: Subjects, queries: list[tuple[str, str]], effort: Effort
) -> dict[str, Any]:
    """By number of callers: each subject's medians, and what share KeMem is of it."""
    vectors = await WordLlamaEmbedder.load().embed([text for _, text in queries])
    named = rounds_of(subjects, queries, vectors)
    for measure in named.values():
        await measure(16, 0.5)
    by_callers = {}
    for callers in CALLERS:
        kept = await in_turn(named, subjects.cluster, callers, effort)
        by_callers[str(callers)] = {
            "subjects": {name: asdict(median(rounds)) for name, rounds in kept.items()},
            "kemem_share": shares(kept),
        }
    return by_callers


async def measure_use(
    cluster: Cluster, queries: list[tuple[str, str]], effort: Effort
) -> dict[str, Any]:
    """KeMem with and without the counting of use, 16 callers, and what it does to the table."""
    before = await table_state(cluster)
    requests = [
        post(
            "/v1/memories/search",
            {"user_id": user, "query": text, "limit": 10, "mode": MODE},
            cluster.key,
        )
        for user, text in queries
    ]
    async with (
        child("load") as load,
        server("service", dsn=cluster.dsn) as counting,
        server("service", "--no-use", dsn=cluster.dsn) as idle,
    ):

        def http(served: Server) -> Round:
            async def measure(callers: int, seconds: float) -> Measured:
                return await fire(load, served, requests, callers=callers, seconds=seconds)

            return measure

        named = {"kemem": http(counting), "kemem_no_use": http(idle)}
        kept = await in_turn(named, cluster, 16, replace(effort, seconds=2.5))
    return {
        "subjects": {name: asdict(median(rounds)) for name, rounds in kept.items()},
        "kemem_share": shares(kept),
        "before": before,
        "after": await table_state(cluster),
    }


def shares(kept: Mapping[str, list[Measured]]) -> dict[str, float]:
    """KeMem's requests per second as a share of each other's, round by round; the median.

    Round by round, because whatever else the machine does then weighs on both.
    """
    own = kept.get("kemem", [])
    return {
        name: statistics.median(
            ours.per_second / theirs.per_second for ours, theirs in zip(own, rounds, strict=True)
        )
        for name, rounds in kept.items()
        if own and name != "kemem"
    }


_TABLE = """
SELECT n_tup_upd AS updated, n_tup_hot_upd AS hot, n_dead_tup AS dead,
    autovacuum_count AS autovacuums, pg_relation_size('memories') AS table_bytes,
    pg_indexes_size('memories') AS index_bytes
FROM pg_stat_user_tables WHERE relname = 'memories'
"""


async def table_state(cluster: Cluster) -> dict[str, int]:
    connection = await asyncpg.connect(cluster.owner_dsn)
    try:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        return dict(await connection.fetchrow(_TABLE))
    finally:
        await connection.close()


async def measure_references(effort: Effort) -> dict[str, Any]:
    """Semantic search beside the references."""
    users = population(effort.rows)
    async with open_cluster() as cluster:
        total_bytes = await fill(cluster, users)
        async with open_subjects(cluster) as subjects:
            sizes = {
                str(size): await measure_size(subjects, asked(users, size), effort)
                for size in SIZES
            }
        use = await measure_use(cluster, asked(users, 1_000), effort)
        where = await breakdown.measure(cluster.dsn, cluster.key, *asked(users, 100)[1], mode=MODE)
    return {
        "memories": sum(users.values()),
        "total_bytes": total_bytes,
        "search": sizes,
        "use": use,
        "where_the_time_goes": where,
    }


async def measure_modes(effort: Effort, locomo: Path | None) -> dict[str, Any]:
    """Hybrid search beside semantic and beside raw SQL, on real talk."""
    async with open_cluster() as cluster:
        return await search_modes.measure(
            cluster, locomo, rounds=effort.rounds, seconds=2 * effort.seconds
        )


async def measure_all(effort: Effort, given: argparse.Namespace) -> dict[str, Any]:
    """The parts that are asked for."""
    before = os.getloadavg()[0]
    result: dict[str, Any] = {"effort": asdict(effort)}
    if given.only in (None, "modes"):
        result["modes"] = await measure_modes(effort, given.locomo)
    if given.only in (None, "references"):
        result["references"] = await measure_references(effort)
    result["machine"] = {
        "date": utc_now().isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "load_before": before,
        "load_after": os.getloadavg()[0],
    }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, a few short rounds")
    parser.add_argument("--locomo", type=Path, help="locomo10.json, for hybrid search on real talk")
    parser.add_argument("--only", choices=("modes", "references"), help="one comparison alone")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/search.json"))
    given = parser.parse_args()
    effort = QUICK if given.quick else Effort()
    if given.rounds:
        effort = replace(effort, rounds=given.rounds)
    result = asyncio.run(measure_all(effort, given))
    publish(result, search_report.markdown(result), given.out)


if __name__ == "__main__":
    main()
