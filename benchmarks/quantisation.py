"""Searches with binary codes compared with exact ones: how fast, and how many of the same hits.

`python -m benchmarks.quantisation` stores buckets of long vectors in a PostgreSQL that it starts,
searches each exactly, makes codes for all of them, and searches again.
"""

import argparse
import asyncio
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg
import numpy as np
from pgvector.asyncpg import register_vector
from rich.progress import Progress

from app.identity.tenants.access import Access
from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.language.ranking.boosts import Boosts
from app.language.ranking.packing import INDEX_COLUMNS as WORDS
from app.language.ranking.query import parse_query
from app.language.text.normal_forms import content_hash
from app.memory.memories.candidate_search import by_all, by_vectors
from app.memory.memories.comparison_sql import MINIMUM_DIMENSION
from app.memory.memories.quantisation import QuantisationService
from app.memory.memories.search_sql import Bucket, SearchPlan
from app.memory.memories.searchable import row_terms
from app.platform.database.base import new_id
from app.platform.database.engine import Database, open_database
from benchmarks.corpus import questions, sentences
from benchmarks.database import COLUMNS, TENANT, Cluster, add_users, open_cluster
from benchmarks.publishing import publish

REFERENCE = datetime(2026, 11, 21, tzinfo=UTC)
CLUSTER = 100
"""Rows that tell of one thing."""
EXACT = "-exact"
ROUNDS = 2
CHUNK = 2_000
HITS = (10, 100)
CANDIDATES = (50, 100, 200, 400, 800)
LIFTED = 1536

# Of a row of `halves` and $1.
_DISTANCES = {
    "vector": "embedding <#> CAST($1 AS vector)",
    "halfvec": "half <#> CAST(CAST($1 AS vector) AS halfvec)",
    "code": "code <~> CAST(binary_quantize(CAST($1 AS vector)) AS bit varying)",
}

Floats = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A bucket: `mixture` of clusters, or `texts` by the local embedder, or those `lifted` into
    more dimensions, which keeps every cosine.
    """

    name: str
    dimension: int
    rows: int

    @property
    def user(self) -> str:
        return f"{self.name}-{self.dimension}-{self.rows}"

    @property
    def model(self) -> str:
        return f"{self.name}:{self.dimension}"


BUCKETS = (
    *(Kind("mixture", 1536, rows) for rows in (500, 1_000, 2_000, 5_000, 20_000)),
    *(Kind("mixture", dimension, 5_000) for dimension in (256, 512, 768, 1024, 3072)),
    *(Kind("mixture", dimension, 20_000) for dimension in (256, 512)),
    Kind("texts", 256, 20_000),
    Kind("lifted", LIFTED, 5_000),
)
QUICK = (Kind("mixture", 1536, 1_000), Kind("mixture", 512, 1_000), Kind("lifted", LIFTED, 1_000))


def _unit(rows: Any) -> Floats:
    scaled: Floats = (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)
    return scaled


def _mixture(kind: Kind, random: np.random.Generator, queries: int) -> tuple[Floats, Floats]:
    """Clusters with a direction in common: cosines of 0.63 within and 0.17 between them."""
    dimension = kind.dimension
    clusters = kind.rows // CLUSTER
    centres = _unit(random.standard_normal((clusters, dimension)))
    common = _unit(random.standard_normal(dimension)) * 0.6
    noise = random.standard_normal((kind.rows, dimension)) * (0.9 / np.sqrt(dimension))
    rows = _unit(centres[random.integers(0, clusters, kind.rows)] + noise + common)
    asked = rows[random.integers(0, kind.rows, queries)] * 0.55
    return rows, _unit(asked + random.standard_normal(asked.shape) * (0.8 / np.sqrt(dimension)))


async def _vectors(kind: Kind, texts: list[str], asked: list[str]) -> tuple[Floats, Floats]:
    random = np.random.default_rng(5)
    if kind.name == "mixture":
        return _mixture(kind, random, len(asked))
    embedder = WordLlamaEmbedder.load()
    rows, queries = (
        np.asarray(one) for one in (await embedder.embed(texts), await embedder.embed(asked))
    )
    if kind.name == "lifted":
        turn = np.linalg.qr(random.standard_normal((LIFTED, rows.shape[1])))[0].T
        rows, queries = rows @ turn, queries @ turn
    return _unit(rows), _unit(queries)


async def _fill(
    cluster: Cluster, kind: Kind, user: str, texts: list[str], vectors: Floats
) -> list[str]:
    """Store the memories of one of the twins; their ids, in order."""
    ids = [new_id("mem") for _ in vectors]
    random = np.random.default_rng(6)
    connection = await asyncpg.connect(cluster.owner_dsn)
    try:
        await register_vector(connection)
        await add_users(connection, [user])
        for start in range(0, len(ids), CHUNK):
            rows = []
            for place in range(start, min(start + CHUNK, len(ids))):
                words = row_terms(texts[place], {}, None)
                rows.append(
                    (
                        TENANT, ids[place], user, "user", user, texts[place],
                        content_hash(texts[place]), "fact", "long", "user",
                        float(random.choice((0.7, 0.8, 0.9, 1.0))), "members", vectors[place],
                        kind.model, *(words[name] for name in WORDS),
                    )
                )  # fmt: skip
            await connection.copy_records_to_table(
                "memories", records=rows, columns=(*COLUMNS, *WORDS)
            )
    finally:
        await connection.close()
    return ids


@dataclass(frozen=True, slots=True)
class Twins:
    """A quantised bucket, and another with the same memories that is searched exactly."""

    kind: Kind
    asked: list[str]
    vectors: Floats
    places: dict[str, int]
    """Of the memories of both, by id."""

    async def measure(self, database: Database, mode: str) -> dict[str, float]:
        """Milliseconds of both, and what part of the exact hits is found; in turn, so that a
        busy machine is as busy for either.
        """
        figures: dict[str, float] = {}
        for limit in HITS:
            times: dict[str, list[float]] = {EXACT: [], "": []}
            shares = []
            for text, vector in zip(self.asked, self.vectors, strict=True):
                hits: dict[str, set[int]] = {}
                for twin, spent in times.items():
                    rounds = []
                    for _ in range(ROUNDS):
                        begun = time.perf_counter()
                        found = await self._one(database, twin, text, vector, mode, limit)
                        rounds.append((time.perf_counter() - begun) * 1e3)
                        hits[twin] = {self.places[one] for one in found}
                    spent.append(min(rounds))
                shares.append(len(hits[EXACT] & hits[""]) / len(hits[EXACT]))
            figures |= {
                f"exact_ms@{limit}": round(median(times[EXACT]), 2),
                f"coded_ms@{limit}": round(median(times[""]), 2),
                f"recall@{limit}": round(float(np.mean(shares)), 3),
            }
        return figures

    async def _one(
        self, database: Database, twin: str, text: str, vector: Floats, mode: str, limit: int
    ) -> list[str]:
        user = self.kind.user + twin
        plan = SearchPlan(
            access=Access(TENANT),
            buckets=[Bucket("user", user, 0.6)],
            vectors={self.kind.model: vector},
            user_id=user,
            agent_id=None,
            weights=(0.5, 0.3, 0.2),
            limit=limit,
            mode=mode,
        )
        if mode == "semantic":
            found = await by_vectors(database, plan)
        else:
            asked = replace(parse_query(text, REFERENCE), vectors=plan.vectors)
            found = await by_all(database, TENANT, replace(plan, asked=asked), asked, Boosts())
        return [one.ranked.memory_id for one in found]


def found_by_codes(rows: Floats, queries: Floats) -> dict[str, dict[str, float]]:
    """Of the nearest by cosine alone, what part is among so many of the nearest by code."""
    bits = rows > 0
    found: dict[str, dict[str, float]] = {}
    for query in queries:
        exact = np.argsort(-(rows @ query))
        order = np.argsort((bits ^ (query > 0)).sum(axis=1), kind="stable")
        for number in CANDIDATES:
            chosen = set(order[:number].tolist())
            for limit in HITS:
                part = len(chosen & set(exact[:limit].tolist())) / limit
                sums = found.setdefault(str(number), {})
                sums[f"recall@{limit}"] = sums.get(f"recall@{limit}", 0.0) + part / len(queries)
    return found


async def _halves(cluster: Cluster, kinds: list[tuple[Kind, Floats]]) -> list[dict[str, Any]]:
    """How long it takes to compare every row by vector, by half vector, and by code."""
    measured = []
    connection = await asyncpg.connect(cluster.owner_dsn)
    try:
        await register_vector(connection)
        await connection.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
        for kind, queries in kinds:
            await connection.execute("DROP TABLE IF EXISTS halves")
            await connection.execute(
                "CREATE TABLE halves AS SELECT embedding, CAST(embedding AS halfvec) AS half, "
                "CAST(binary_quantize(embedding) AS bit varying) AS code FROM memories "
                f"WHERE user_id = '{kind.user}'"
            )
            await connection.execute("VACUUM ANALYZE halves")
            line: dict[str, Any] = {"dimension": kind.dimension, "rows": kind.rows}
            for name, distance in _DISTANCES.items():
                spent = []
                for query in queries:
                    begun = time.perf_counter()
                    await connection.fetchval(f"SELECT min({distance}) FROM halves", query)
                    spent.append((time.perf_counter() - begun) * 1e3)
                line[f"{name}_ms"] = round(median(spent), 2)
            measured.append(line)
        await connection.execute("DROP TABLE IF EXISTS halves")
    finally:
        await connection.close()
    return measured


async def measure_all(kinds: tuple[Kind, ...], queries: int) -> dict[str, Any]:
    texts, asked = sentences(5), questions(6, queries)
    result: dict[str, Any] = {"queries": queries, "buckets": []}
    async with (
        open_cluster() as cluster,
        open_database(cluster.dsn, pool_size=2, statement_timeout_seconds=600) as database,
    ):
        with Progress() as bar:
            task = bar.add_task("Filling", total=2 * len(kinds) + 1)
            all_twins, lines = [], []
            for kind in kinds:
                rows, vectors = await _vectors(kind, texts[: kind.rows], asked)
                places: dict[str, int] = {}
                for twin in (EXACT, ""):
                    ids = await _fill(cluster, kind, kind.user + twin, texts, rows)
                    places |= {one: place for place, one in enumerate(ids)}
                all_twins.append(Twins(kind, asked, vectors, places))
                line: dict[str, Any] = {"bucket": kind.user}
                lines.append(line | {"codes": found_by_codes(rows, vectors)})
                bar.advance(task)
            result |= await _quantise(cluster, database, lines)
            bar.advance(task)
            for twins, line in zip(all_twins, lines, strict=True):
                for mode in ("semantic", "hybrid"):
                    line[mode] = await twins.measure(database, mode)
                bar.advance(task)
            result["buckets"] = lines
        halves = [one for one in all_twins if one.kind.rows in (1_000, 5_000)]
        result["halves"] = await _halves(cluster, [(one.kind, one.vectors) for one in halves])
    return result


async def _quantise(cluster: Cluster, database: Database, lines: list[dict[str, Any]]) -> Any:
    """Quantise all buckets, and clear the codes of the exact twins."""
    begun = time.perf_counter()
    outcomes = await QuantisationService(database, 100).run(TENANT)
    seconds = round(time.perf_counter() - begun, 2)
    sampled = {one.bucket.scope_id: one.recall for one in outcomes}
    for line in lines:
        line["sampled"] = sampled[line["bucket"]]
    connection = await asyncpg.connect(cluster.owner_dsn)
    try:
        await connection.execute(
            f"UPDATE memories SET code = NULL WHERE user_id LIKE '%{EXACT}' AND code IS NOT NULL"
        )
        await connection.execute("VACUUM ANALYZE memories")
    finally:
        await connection.close()
    return {"coding_seconds": seconds, "coded_rows": sum(one.rows for one in outcomes)}


def markdown(result: dict[str, Any]) -> str:
    lines = [
        "# Searching by binary codes",
        "",
        f"Median milliseconds of {result['queries']} searches for 10 and for 100, exact / by "
        "codes, in turn, and what part of the exact hits is found; in one process, without HTTP. "
        f"Codes of fewer than {MINIMUM_DIMENSION} bits, and those that were refused, are not "
        "used. `mixture` are clusters of isotropic noise, `texts` sentences by the local "
        f"embedder, `lifted` those in {LIFTED} dimensions with the same cosines.",
        "",
        "| bucket | semantic, 10 | found | semantic, 100 | found "
        "| hybrid, 10 | found | hybrid, 100 | found | sampled |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in result["buckets"]:
        cells = [one["bucket"]]
        for mode in ("semantic", "hybrid"):
            found = one[mode]
            for limit in HITS:
                exact, coded = found[f"exact_ms@{limit}"], found[f"coded_ms@{limit}"]
                cells += [f"{exact:.1f} / {coded:.1f}", f"{found[f'recall@{limit}']:.3f}"]
        sampled = one["sampled"]
        cells.append("–" if sampled is None else f"{sampled:.3f}")
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        f"Codes for {result['coded_rows']:,} rows took {result['coding_seconds']:.1f} s, samples "
        "counted.",
        "",
        "What part of the nearest, by cosine alone, is among so many of the nearest by code:",
        "",
        f"| bucket | {' | '.join(f'@10 of {number}' for number in CANDIDATES)} "
        f"| {' | '.join(f'@100 of {number}' for number in CANDIDATES[2:])} |",
        "|:--|" + "--:|" * (2 * len(CANDIDATES) - 2),
    ]
    for one in result["buckets"]:
        cells = [f"{one['codes'][str(number)]['recall@10']:.3f}" for number in CANDIDATES]
        cells += [f"{one['codes'][str(number)]['recall@100']:.3f}" for number in CANDIDATES[2:]]
        lines.append(f"| {one['bucket']} | {' | '.join(cells)} |")
    lines += [
        "",
        "Comparing every row of a table, milliseconds:",
        "",
        "| dimensions | rows | vector | halfvec | code |",
        "|--:|--:|--:|--:|--:|",
        *(
            f"| {one['dimension']} | {one['rows']:,} | {one['vector_ms']:.1f} "
            f"| {one['halfvec_ms']:.1f} | {one['code_ms']:.1f} |"
            for one in result["halves"]
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller buckets")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/quantisation.json"))
    given = parser.parse_args()
    result = asyncio.run(measure_all(*((QUICK, 8) if given.quick else (BUCKETS, 20))))
    publish(result, markdown(result), given.out)


if __name__ == "__main__":
    main()
