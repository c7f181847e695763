"""KeMem as the number of memories grows, with users of one size: `python -m benchmarks.growth`.

`--sizes 10000,100000,1000000` says how many memories there are at each step. Each user has 200 and
a session of 50 messages. The first 50 users have the texts of the corpus; the others are copies of
them with ids and numbers of their own. One caller asks users drawn at random from all of them;
searches, contexts, saves and appends are timed at every step, in one service.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

import asyncpg

from benchmarks.corpus import questions
from benchmarks.database import AGENT, TENANT, Cluster, fill, open_cluster
from benchmarks.processes import Child, Measured, Server, child, fire, server
from benchmarks.products import Call, Texts, of_kemem
from benchmarks.publishing import load_of, publish

OF_EACH: Final = 200
"""Memories of a user."""
FIRST: Final = 50
"""Users whose rows the others copy."""
SAID: Final = 50
"""Messages of a user's session."""
CALLS: Final = 400
"""Timed calls of a kind at each step; half as many before, untimed."""
GOAL: Final = 1.5
"""How much longer the median may take at the largest size than at the smallest."""

KINDS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "search": ("search", {}),
    "search, semantic": ("search", {"mode": "semantic"}),
    "context": ("context", {}),
    "save one": ("save", {}),
    "append one": ("append", {}),
}
"""What a row of the report asks, and with which members of a search."""

_USERS: Final = """
INSERT INTO users (tenant_id, user_id, agent_id)
SELECT $1, 'user' || n, $2 FROM generate_series($3::int, $4::int - 1) AS n
"""

_COLUMNS: Final = """
SELECT attname FROM pg_attribute
WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""

# What a copied row has of its own; `n` is the number of its user.
_OWN: Final[Mapping[str, Mapping[str, str]]] = {
    "memories": {
        "memory_id": "memory_id || '-' || n",
        "user_id": "'user' || n",
        "scope_id": "'user' || n",
        # The index of equal texts has to tell the copies apart.
        "content": "content || ' ' || n",
        "content_hash": "decode(md5(memory_id || n), 'hex')",
    },
    "sessions": {"session_id": "'said' || n", "user_id": "'user' || n"},
    "messages": {
        "message_id": "message_id || '-' || n",
        "parent_message_id": "parent_message_id || '-' || n",
        "session_id": "'said' || n",
        "user_id": "'user' || n",
    },
}


@dataclass(frozen=True, slots=True)
class Step:
    """What was measured at one size."""

    memories: int
    users: int
    table_bytes: int
    kinds: Mapping[str, Measured]


async def copy(owner: asyncpg.Connection, table: str, before: int, after: int) -> None:
    """Give the users of those numbers what the first ones have in `table`."""
    columns = [row["attname"] for row in await owner.fetch(_COLUMNS, table)]
    values = [_OWN[table].get(column, column) for column in columns]
    await owner.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} "
        f"FROM generate_series($1::int, $2::int - 1) AS n "
        f"JOIN {table} ON tenant_id = $3 AND user_id = 'user' || (n % {FIRST})",
        before,
        after,
        TENANT,
    )


@dataclass(slots=True)
class Growth:
    """The service that is measured, and how many users it has."""

    cluster: Cluster
    served: Server
    load: Child
    texts: Texts
    users: int = FIRST

    async def begin(self) -> None:
        """The first users, and what they said."""
        await fill(self.cluster, {f"user{n}": OF_EACH for n in range(FIRST)})
        said = [
            Call("append", f"user{n}", f"said{n}", tuple(self.texts.take(SAID)))
            for n in range(FIRST)
        ]
        await self._fire(said)

    async def grow(self, memories: int) -> int:
        """Copy users until there are so many memories; the bytes of their table."""
        owner = await asyncpg.connect(self.cluster.owner_dsn)
        try:
            # Rows are right as they are made; looking each owner up takes half of the time.
            await owner.execute(
                "SET session_replication_role = replica; SET synchronous_commit = off"
            )
            before, self.users = self.users, max(memories // OF_EACH, FIRST)
            await owner.execute(_USERS, TENANT, AGENT, before, self.users)
            for table in _OWN:
                await copy(owner, table, before, self.users)
            await owner.execute("VACUUM ANALYZE")
            await owner.execute("CHECKPOINT")
            return int(await owner.fetchval("SELECT pg_total_relation_size('memories')"))
        finally:
            await owner.close()

    async def step(self, memories: int) -> Step:
        size = await self.grow(memories)
        measured = {}
        for label, (kind, search) in KINDS.items():
            await self._fire(self._calls(kind, CALLS // 2), **search)
            before = self.cluster.cpu_seconds()
            found = await self._fire(self._calls(kind, CALLS), **search)
            used = self.cluster.cpu_seconds() - before
            measured[label] = replace(found, database_cpu_ms=used / CALLS * 1000)
        return Step(memories, self.users, size, measured)

    def _calls(self, kind: str, number: int) -> list[Call]:
        """Calls of users drawn from all."""
        random = Random(number)
        reads = kind in {"search", "context"}
        texts = questions(3, number) if reads else self.texts.take(number)
        drawn = [random.randrange(self.users) for _ in texts]
        return [
            Call(kind, f"user{n}", f"said{n}", (text,))
            for n, text in zip(drawn, texts, strict=True)
        ]

    async def _fire(self, calls: Sequence[Call], **search: Any) -> Measured:
        request = of_kemem(self.cluster.key, **search)
        requests = [request(call) for call in calls]
        return await fire(self.load, self.served, requests, callers=1, seconds=600.0, once=True)


async def measure(sizes: Sequence[int]) -> dict[str, Any]:
    before = os.getloadavg()[0]
    async with (
        open_cluster() as cluster,
        child("load") as load,
        server("service", dsn=cluster.dsn) as served,
    ):
        growth = Growth(cluster, served, load, Texts())
        await growth.begin()
        steps = []
        for size in sizes:
            steps.append(asdict(await growth.step(size)))
            print(f"{size:,} memories measured", file=sys.stderr, flush=True)
    return {
        "of_each": OF_EACH,
        "said": SAID,
        "calls": CALLS,
        "goal": GOAL,
        "steps": steps,
        "load_before": before,
        "load_after": os.getloadavg()[0],
    }


def markdown(found: Mapping[str, Any]) -> str:
    """The report: p50 and p95 of each kind at each size, and how much longer the last takes."""
    steps = found["steps"]
    head = "".join(f" {step['memories']:,} |" for step in steps)
    lines = [
        "# Growth at one size of users\n",
        f"Users of {found['of_each']} memories and a session of {found['said']} messages, drawn at "
        f"random, {found['calls']} calls of one caller a figure; p50 / p95 in ms, PostgreSQL's CPU "
        f"a call in brackets. Goal: the last median at most {found['goal']} times the first.\n",
        f"| memories |{head} last / first |",
        "|---|" + "--:|" * (len(steps) + 1),
    ]
    for kind in KINDS:
        rows = [step["kinds"][kind] for step in steps]
        cells = "".join(
            f" {row['p50_ms']:.1f} / {row['p95_ms']:.1f} ({row['database_cpu_ms']:.1f}) |"
            for row in rows
        )
        lines.append(f"| {kind} |{cells} {rows[-1]['p50_ms'] / rows[0]['p50_ms']:.2f} |")
    sizes = "".join(f" {step['table_bytes'] / step['memories']:,.0f} |" for step in steps)
    lines.append(f"| bytes of `memories` and its indexes, a row |{sizes} |")
    return "\n".join([*lines, "", load_of(found), ""])


def main() -> None:
    """Measure, print and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/growth.json"))
    given = parser.parse_args()
    found = asyncio.run(measure([int(size) for size in given.sizes.split(",")]))
    publish(found, markdown(found), given.out)


if __name__ == "__main__":
    main()
