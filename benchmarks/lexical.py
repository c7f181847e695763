"""Candidates for the lexical search, compared: `python -m benchmarks.lexical [--locomo PATH]`.

Each candidate has the same texts in tables of its own and answers the same questions in turn, as
the service's role and behind the policies: the share of the hits of exact BM25, the time of a
search, and what a save costs, alone and beside seven others of one user. `--locomo` uses its turns
and questions instead of generated sentences.
"""

import argparse
import asyncio
import math
import os
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, Final

import asyncpg
from pgvector.asyncpg import register_vector
from rich.progress import Progress

from app.evaluation.locomo import read_locomo
from app.language.ranking.packing import K1, B
from app.language.text.terms import terms
from app.platform.database.engine import Database, open_database
from app.platform.database.roles import APP, OWNER, TENANT_SETTING, tenant_policies
from benchmarks.corpus import questions, sentences
from benchmarks.database import TENANT, Cluster, open_cluster
from benchmarks.lexical_arms import ARMS, HITS, Arm, Doc
from benchmarks.publishing import publish

SIZES: Final = (100, 1_000, 10_000)
QUICK: Final = (100, 1_000)
WRITTEN: Final = 1_000
"""How many texts has the user that is written for, and each of the others."""
OTHERS: Final = 20
"""Users besides, as tables and indexes have in earnest."""
WRITERS: Final = 8
ROUNDS: Final = 6
ROUND: Final = 40
"""How many saves of each candidate in a round."""
ASKED: Final = 60
NEARLY: Final = 1e-4
"""How much less a score may be and still count as the same: products have 24 bits."""
RESULT: Final = Path(__file__).parent / "results" / "lexical.json"


@dataclass(frozen=True, slots=True)
class Material:
    """What is stored, what is asked, and what is written while the clock runs."""

    name: str
    sizes: Sequence[int]
    texts: Sequence[str]
    questions: Sequence[str]
    fresh: Sequence[str]

    @property
    def rows(self) -> int:
        """All that are stored."""
        return sum(self.sizes) + OTHERS * WRITTEN


def material(locomo: Path | None, sizes: Sequence[int]) -> Material:
    made, fresh = sentences(7)[: max(SIZES)], sentences(8)[: ROUNDS * ROUND]
    if locomo is None:
        return Material("Sentences made up", sizes, made, questions(9, ASKED), fresh)
    stores = read_locomo(locomo).stores
    turns = [unit.text for store in stores for unit in store.units]
    asked = [one.text for store in stores for one in store.questions]
    return Material(
        "Turns of LoCoMo, made-up sentences where those are too few",
        sizes,
        [*turns, *made][: max(SIZES)],
        asked[:: len(asked) // ASKED][:ASKED],
        fresh,
    )


class Exact:
    """BM25 as it is written in the books, over the texts of one user."""

    def __init__(self, docs: Sequence[Doc]) -> None:
        self._rows = len(docs)
        self._lengths: dict[str, int] = {}
        self._holders: dict[str, dict[str, int]] = defaultdict(dict)
        for doc in docs:
            counts = Counter(terms(doc.text))
            self._lengths[doc.doc_id] = counts.total()
            for term, often in counts.items():
                self._holders[term][doc.doc_id] = often
        self._mean = mean(self._lengths.values())

    def scores(self, query: str) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        for term, asked in Counter(terms(query)).items():
            held = self._holders.get(term, {})
            worth = math.log1p((self._rows - len(held) + 0.5) / (len(held) + 0.5)) * asked**0.5
            for doc_id, often in held.items():
                saturation = K1 * (1 - B + B * self._lengths[doc_id] / self._mean)
                found[doc_id] += worth * (K1 + 1) * often / (often + saturation)
        return found

    def recall(self, query: str, found: Sequence[str]) -> float | None:
        """The share of the best ten that are among the hits; of equal ones any. None for nothing
        to find.
        """
        scores = self.scores(query)
        if not scores:
            return None
        best = sorted(scores.values(), reverse=True)[:HITS]
        right = sum(scores.get(one, 0.0) >= best[-1] * (1 - NEARLY) for one in set(found))
        return min(right, len(best)) / len(best)


async def create(owner: asyncpg.Connection, arm: Arm) -> None:
    await owner.execute(f"SET ROLE {OWNER}")
    for statement in arm.schema():
        await owner.execute(statement)
    for table in arm.tables():
        for statement in tenant_policies(table):
            await owner.execute(statement)
    await owner.execute("RESET ROLE")


async def search(
    database: Database, user: str, exact: Exact, asked: Sequence[str]
) -> list[dict[str, float]]:
    """How fast each arm is and what it finds; every question is put to all of them in turn."""
    recalls: list[list[float]] = [[] for _ in ARMS]
    times: list[list[float]] = [[] for _ in ARMS]
    for arm in ARMS:
        for query in asked:
            await arm.find(database, user, query)
    for query in asked:
        for place, arm in enumerate(ARMS):
            began = time.perf_counter()
            found = await arm.find(database, user, query)
            times[place].append((time.perf_counter() - began) * 1e3)
            recall = exact.recall(query, found)
            if recall is not None:
                recalls[place].append(recall)
    return [
        {"p50_ms": median(took), "recall": mean(found)}
        for took, found in zip(times, recalls, strict=True)
    ]


async def writer(cluster: Cluster, *, waits: bool) -> asyncpg.Connection:
    """A connection as the service's role; `waits` for the disk at the end of a transaction."""
    commit = {"synchronous_commit": "on" if waits else "off"}
    connection = await asyncpg.connect(cluster.dsn, server_settings=commit)
    await register_vector(connection)
    await connection.execute(f"SET ROLE {APP}")
    return connection


async def save(connection: asyncpg.Connection, arm: Arm, user: str, docs: Sequence[Doc]) -> None:
    """A transaction each, as the service saves."""
    for doc in docs:
        async with connection.transaction():
            await connection.execute("SELECT set_config($1, $2, true)", TENANT_SETTING, TENANT)
            await arm.write(connection, user, doc)


async def write(
    cluster: Cluster, arms: Sequence[Arm], fresh: Sequence[str]
) -> list[dict[str, float]]:
    """Milliseconds per row of each arm for the user of 1,000 texts: one writer, several at once.

    In turn, round after round; medians over the rounds.
    """
    alone = [await writer(cluster, waits=False)]
    together = [await writer(cluster, waits=True) for _ in range(WRITERS)]
    user = f"of{WRITTEN}"
    took: list[dict[str, list[float]]] = [{"alone_ms": [], "together_ms": []} for _ in arms]
    try:
        for start in range(0, ROUNDS * ROUND, ROUND):
            for arm, times in zip(arms, took, strict=True):
                for name, writers in (("alone_ms", alone), ("together_ms", together)):
                    docs = [Doc.of(text) for text in fresh[start : start + ROUND]]
                    began = time.perf_counter()
                    await asyncio.gather(
                        *(
                            save(connection, arm, user, docs[number :: len(writers)])
                            for number, connection in enumerate(writers)
                        )
                    )
                    times[name].append((time.perf_counter() - began) * 1e3 / len(docs))
    finally:
        for connection in (*alone, *together):
            await connection.close()
    # The first round prepares statements.
    return [{name: median(each[1:]) for name, each in times.items()} for times in took]


async def measure(cluster: Cluster, given: Material) -> tuple[list[dict[str, Any]], int]:
    """What became of each candidate, and how often a search used one of the GIN indexes."""
    owner = await asyncpg.connect(cluster.owner_dsn)
    await register_vector(owner)
    every: Sequence[Arm] = (Arm(), *ARMS)
    users = {f"of{size}": [Doc.of(text) for text in given.texts[:size]] for size in given.sizes}
    exact = {user: Exact(docs) for user, docs in users.items()}
    rows = given.rows
    results: dict[str, dict[str, Any]] = {arm.name: {"candidate": arm.name} for arm in every}
    with Progress(transient=True) as bar:
        for arm in bar.track(every, description="Filling"):
            await create(owner, arm)
            for number in range(OTHERS):
                start = number * WRITTEN // 3
                docs = [Doc.of(text) for text in given.texts[start : start + WRITTEN]]
                await arm.fill(owner, f"other{number}", docs)
            for user, docs in users.items():
                await arm.fill(owner, user, docs)
            size = [
                await owner.fetchval("SELECT pg_total_relation_size($1::regclass)", table)
                for table in arm.tables()
            ]
            results[arm.name]["bytes_per_row"] = sum(size) / rows
        await owner.execute("VACUUM ANALYZE")
        async with open_database(
            cluster.dsn, pool_size=2, statement_timeout_seconds=60
        ) as database:
            for user in bar.track(users, description="Asking"):
                found = await search(database, user, exact[user], given.questions)
                for arm, one in zip(ARMS, found, strict=True):
                    results[arm.name][user] = one
        # Backends tell what they did when they end.
        used = await owner.fetchval(
            "SELECT sum(idx_scan)::int FROM pg_stat_user_indexes WHERE indexrelname LIKE '%words'"
        )
        bar.add_task("Writing", total=None)
        for arm, times in zip(every, await write(cluster, every, given.fresh), strict=True):
            results[arm.name] |= times
    await owner.close()
    return list(results.values()), used


def markdown(result: dict[str, Any]) -> str:
    sizes = result["sizes"]
    heads = [
        *(f"recall@{HITS} of {size:,}" for size in sizes),
        *(f"p50 ms of {size:,}" for size in sizes),
        "save, ms", f"save, {WRITERS} at once", "bytes a row",
    ]  # fmt: skip
    lines = [
        "# Candidates for the search by words",
        "",
        f"{result['texts']}; {result['questions']} questions. The texts of one user, of "
        f"{result['rows']:,} in the table, by the role of the service behind the policies. Recall "
        "is the share of the ten best of exact BM25 over the user's texts, counted over questions "
        "that have a word in common with any. A save is a transaction that reads a text and stores "
        f"it, for the user of {WRITTEN:,}: alone without waiting for the disk, {WRITERS} at once "
        "with it, wall clock by row. Hits are ids alone. One process, no HTTP; load of the machine "
        f"{result['load'][0]} before and {result['load'][1]} after.",
        "",
        f"| candidate | {' | '.join(heads)} |",
        "|:--|" + "--:|" * len(heads),
    ]
    for one in result["candidates"]:
        found = [one.get(f"of{size}") for size in sizes]
        cells = ["" if each is None else f"{each['recall']:.3f}" for each in found]
        cells += ["" if each is None else f"{each['p50_ms']:.2f}" for each in found]
        cells += [f"{one['alone_ms']:.2f}", f"{one['together_ms']:.2f}"]
        cells.append(f"{one['bytes_per_row']:,.0f}")
        lines.append(f"| {one['candidate']} | {' | '.join(cells)} |")
    lines += ["", f"Searches that used a GIN index: {result['gin_used']}."]
    return "\n".join([*lines, ""])


async def run(locomo: Path | None, sizes: Sequence[int]) -> dict[str, Any]:
    given = material(locomo, sizes)
    before = os.getloadavg()[0]
    async with open_cluster() as cluster:
        candidates, used = await measure(cluster, given)
    return {
        "texts": given.name,
        "questions": len(given.questions),
        "sizes": list(sizes),
        "rows": given.rows,
        "load": [round(before, 1), round(os.getloadavg()[0], 1)],
        "candidates": candidates,
        "gin_used": used,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path, help="LoCoMo's file, for its turns and questions")
    parser.add_argument("--quick", action="store_true", help="no user of 10,000 texts")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    result = asyncio.run(run(given.locomo, QUICK if given.quick else SIZES))
    publish(result, markdown(result), given.out)


if __name__ == "__main__":
    main()
