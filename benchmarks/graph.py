"""Neighbours of an entity: `python -m benchmarks.graph [--quick] [--out F]`.

`GET /v1/graph/neighbours` over HTTP, one to three steps from random entities, compared in turn with
the same walk in SQL written by hand, on the same PostgreSQL.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import httpx

from benchmarks.database import TENANT, Cluster, add_users, open_cluster
from benchmarks.processes import server
from benchmarks.publishing import load_of, publish

SIZES = (1_000, 100_000)
QUICK_SIZES = (1_000,)
DEPTHS = (1, 2, 3)
REQUESTS = 200
QUICK_REQUESTS = 15
WARM = 5
LIMIT = 100
# Relations per entity that begin there; as many end there.
OUT = 4
USER = "ana"
SUBJECTS = ("KeMem", "SQL")

ENTITIES = """
INSERT INTO graph_entities
    (tenant_id, entity_id, name, name_key, entity_type, scope, scope_id, user_id)
SELECT $1, 'ent_' || n, 'Name ' || n, 'name ' || n, 'person', 'user', $2, $2
FROM generate_series(0, $3::int - 1) n
"""
RELATIONS = """
INSERT INTO graph_relations (tenant_id, relation_id, version, source_id, relation, destination_id,
    confidence, scope, scope_id, user_id)
SELECT $1, 'rel_' || n, 1, 'ent_' || n % $3, 'knows_' || n / $3,
    'ent_' || (n % $3 + 1 + floor(random() * ($3 - 1))::int) % $3, 1, 'user', $2, $2
FROM generate_series(0, $3::int * $4::int - 1) n
"""
AROUND = """
WITH RECURSIVE walk (entity_id, hops) AS (
    SELECT $2::text COLLATE "C", 0
    UNION
    SELECT edge.other, walk.hops + 1
    FROM walk, LATERAL (
        SELECT destination_id AS other FROM graph_relations
        WHERE tenant_id = $1 AND source_id = walk.entity_id AND known_to IS NULL
            AND (valid_from IS NULL OR valid_from <= now())
            AND (valid_to IS NULL OR valid_to > now())
        UNION ALL
        SELECT source_id FROM graph_relations
        WHERE tenant_id = $1 AND destination_id = walk.entity_id AND known_to IS NULL
            AND (valid_from IS NULL OR valid_from <= now())
            AND (valid_to IS NULL OR valid_to > now())
    ) edge
    WHERE walk.hops < $3
), near AS (
    SELECT entity_id, min(hops) AS hops FROM walk GROUP BY entity_id
    ORDER BY hops, entity_id LIMIT $4
)
SELECT e.entity_id, e.name, e.entity_type, near.hops
FROM near JOIN graph_entities e ON e.tenant_id = $1 AND e.entity_id = near.entity_id
"""
AMONG = """
SELECT * FROM graph_relations
WHERE tenant_id = $1 AND source_id = ANY($2) AND destination_id = ANY($2) AND known_to IS NULL
    AND (valid_from IS NULL OR valid_from <= now()) AND (valid_to IS NULL OR valid_to > now())
ORDER BY relation_id LIMIT 1000
"""

Found = tuple[set[str], set[str]]


class Subjects:
    """Both ways to ask what is around an entity; each gives the ids it found."""

    def __init__(self, client: httpx.AsyncClient, owner: asyncpg.Connection) -> None:
        self._client = client
        self._owner = owner

    async def ask(self, subject: str, entity_id: str, depth: int) -> Found:
        if subject == "SQL":
            return await self._by_sql(entity_id, depth)
        params: dict[str, str | int] = {"entity_id": entity_id, "depth": depth, "limit": LIMIT}
        answer = (await self._client.get("/v1/graph/neighbours", params=params)).raise_for_status()
        told = answer.json()
        return (
            {one["entity_id"] for one in told["entities"]},
            {one["relation_id"] for one in told["relations"]},
        )

    async def _by_sql(self, entity_id: str, depth: int) -> Found:
        # The service counts the entity it begins with apart.
        rows = await self._owner.fetch(AROUND, TENANT, entity_id, depth, LIMIT + 1)
        ids = [row["entity_id"] for row in rows]
        among = await self._owner.fetch(AMONG, TENANT, ids)
        return set(ids), {row["relation_id"] for row in among}


async def fill(owner: asyncpg.Connection, relations: int) -> None:
    """Put a random graph of so many relations instead of the present one."""
    entities = relations // OUT
    await owner.execute("TRUNCATE graph_entities CASCADE")
    await owner.execute("SELECT setseed(0.5)")
    await owner.execute(ENTITIES, TENANT, USER, entities)
    await owner.execute(RELATIONS, TENANT, USER, entities, OUT)
    await owner.execute("VACUUM ANALYZE graph_entities")
    await owner.execute("VACUUM ANALYZE graph_relations")


async def walked(
    subjects: Subjects, starts: Sequence[str], depth: int
) -> tuple[dict[str, list[float]], list[Found]]:
    """Seconds of each question, asked of both in turn; what both found alike."""
    seconds: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    found: list[Found] = []
    for number, start in enumerate(starts):
        answers = {}
        for name in SUBJECTS if number % 2 else SUBJECTS[::-1]:
            began = time.perf_counter()
            answers[name] = await subjects.ask(name, start, depth)
            seconds[name].append(time.perf_counter() - began)
        assert answers["KeMem"] == answers["SQL"], (start, depth)
        found.append(answers["SQL"])
    return seconds, found


async def measure(sizes: Sequence[int], requests: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "requests": requests,
        "limit": LIMIT,
        "relations_per_entity": 2 * OUT,
        "load_before": os.getloadavg()[0],
        "rows": [],
    }
    async with open_cluster() as cluster, server("service", dsn=cluster.dsn) as served:
        await _fill_and_ask(cluster, served.port, sizes, requests, found["rows"])
    found["load_after"] = os.getloadavg()[0]
    return found


async def _fill_and_ask(
    cluster: Cluster, port: int, sizes: Sequence[int], requests: int, rows: list[dict[str, Any]]
) -> None:
    owner = await asyncpg.connect(cluster.owner_dsn)
    headers = {"Authorization": f"Bearer {cluster.key}"}
    client = httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60, trust_env=False
    )
    try:
        await add_users(owner, [USER])
        async with client:
            for relations in sizes:
                await fill(owner, relations)
                for depth in DEPTHS:
                    random = Random(depth)
                    starts = [
                        f"ent_{random.randrange(relations // OUT)}" for _ in range(WARM + requests)
                    ]
                    subjects = Subjects(client, owner)
                    await walked(subjects, starts[:WARM], depth)
                    seconds, answers = await walked(subjects, starts[WARM:], depth)
                    rows.append(_row(relations, depth, seconds, answers))
    finally:
        await owner.close()


def _row(
    relations: int, depth: int, seconds: dict[str, list[float]], answers: Sequence[Found]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "relations": relations,
        "depth": depth,
        "entities_found": sum(len(entities) for entities, _ in answers) / len(answers),
        "relations_found": sum(len(edges) for _, edges in answers) / len(answers),
    }
    for name in SUBJECTS:
        ordered = sorted(seconds[name])
        row[name] = {
            "p50_ms": ordered[len(ordered) // 2] * 1000,
            "p95_ms": ordered[int(len(ordered) * 0.95)] * 1000,
        }
    return row


def markdown(found: dict[str, Any]) -> str:
    lines = [
        "# What is around an entity",
        "",
        f"`GET /v1/graph/neighbours` with `limit={found['limit']}` over HTTP beside the same walk "
        "in SQL written by hand, without HTTP, keys, row-level security and bounds: two "
        "statements on one connection. Each row has "
        f"{found['requests']} entities drawn at random, both asked in turn, one at a time; what "
        f"they find is compared and the same. A random graph, in which an entity has "
        f"{found['relations_per_entity']} relations in the mean, stated by hand.",
        "",
        "| relations | steps | entities / relations found | KeMem p50 / p95 ms "
        "| SQL p50 / p95 ms | times as long, p50 |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found["rows"]:
        ours, theirs = row["KeMem"], row["SQL"]
        lines.append(
            f"| {row['relations']:,} | {row['depth']} "
            f"| {row['entities_found']:.0f} / {row['relations_found']:.0f} "
            f"| {ours['p50_ms']:.1f} / {ours['p95_ms']:.1f} "
            f"| {theirs['p50_ms']:.1f} / {theirs['p95_ms']:.1f} "
            f"| {ours['p50_ms'] / theirs['p50_ms']:.1f} |"
        )
    lines += [
        "",
        load_of(found),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 relations and fewer requests")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/graph.json"))
    given = parser.parse_args()
    sizes, requests = (QUICK_SIZES, QUICK_REQUESTS) if given.quick else (SIZES, REQUESTS)
    found = asyncio.run(measure(sizes, requests))
    publish(found, markdown(found), given.out)


if __name__ == "__main__":
    main()
