"""Who goes first beyond a cap: by hand, and PostgreSQL and Python agree on any rows."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from httpx import AsyncClient

from app.identity.agents.retention import Eviction
from app.identity.tenants.access import Access
from app.memory.memories.eviction import Evictable, hybrid_score, reserve, weakest
from app.memory.memories.eviction_repository import EvictionRepository
from app.runtime import Runtime
from tests.support.api import execute, ok
from tests.support.tenants import Caller

NOW = datetime(2026, 11, 23, tzinfo=UTC)
DAY = timedelta(days=1)


def one(
    memory_id: str = "mem_a",
    confidence: float = 0.8,
    *,
    confirmed: float = 0,
    used: float | None = None,
    uses: int = 0,
    kind: str = "fact",
    changed: float = 0,
) -> Evictable:
    """A memory that was confirmed, used and changed so many days ago."""
    return Evictable(
        memory_id,
        kind,
        confidence,
        NOW - confirmed * DAY,
        None if used is None else NOW - used * DAY,
        uses,
        NOW - changed * DAY,
    )


class TestScore:
    @pytest.mark.parametrize(
        ("row", "expected"),
        [
            (one(confidence=1.0), 0.9),
            (one(confidence=0.0), 0.25),
            (one(confirmed=90), 0.65 * 0.8 + 0.125),
            (one(confirmed=180), 0.65 * 0.8 + 0.0625),
            (one(used=0, uses=1), 0.65 * 0.8 + 0.25 + 0.05),
            (one(used=30, uses=1), 0.65 * 0.8 + 0.25 + 0.025),
            (one(used=0, uses=9), 0.65 * 0.8 + 0.25 + 0.09),
            # Clocks differ: what was confirmed in the future is fresh and no more.
            (one(confirmed=-5), 0.65 * 0.8 + 0.25),
        ],
    )
    def test_it_is_65_25_and_10_parts(self, row: Evictable, expected: float) -> None:
        assert hybrid_score(row, NOW) == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("keep", "places"), [(0, 0), (1, 1), (10, 1), (11, 2), (99, 10), (100, 10), (500, 10)]
    )
    def test_a_tenth_is_reserved_and_at_most_ten(self, keep: int, places: int) -> None:
        assert reserve(keep) == places


class TestOrder:
    def test_by_confidence_the_least_certain_goes_first_then_the_least_lately_changed(self) -> None:
        rows = [one("a", 0.9), one("b", 0.7, changed=1), one("c", 0.7, changed=2), one("d", 0.8)]

        assert weakest(rows, keep=1, eviction="confidence", now=NOW) == ["c", "b", "d"]
        assert weakest(rows, keep=4, eviction="confidence", now=NOW) == []

    def test_the_hybrid_score_spares_what_is_fresh_and_asked_for(self) -> None:
        rows = [one("stale", 0.9, confirmed=900), one("used", 0.75, used=1, uses=20)]

        assert weakest(rows, keep=1, eviction="confidence", now=NOW) == ["used"]
        assert weakest(rows, keep=1, eviction="hybrid", now=NOW) == ["stale"]

    def test_corrections_never_count_by_confidence_and_up_to_the_reserve_by_score(self) -> None:
        rows = [one(f"c{n}", 0.5 + n / 100, kind="correction") for n in range(3)]
        rows += [one(f"f{n}", 0.9) for n in range(9)]

        assert weakest(rows, keep=9, eviction="confidence", now=NOW) == []
        # One of ten has a place of its own; the other two compete, and are weaker.
        assert weakest(rows, keep=10, eviction="hybrid", now=NOW) == ["c0"]
        assert weakest(rows, keep=9, eviction="hybrid", now=NOW) == ["c0", "c1"]


async def stored(client: AsyncClient, dsn: str, caller: Caller, rows: list[Evictable]) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    await execute(dsn, "ALTER TABLE memories DISABLE TRIGGER memories_update_time")
    for row in rows:
        await execute(
            dsn,
            """INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, content,
            content_hash, memory_type, tier, source, confidence, visibility, embedding_model,
            create_time, reviewed_at, last_used_at, use_count, update_time)
            VALUES ($1, $2::text, 'ana', 'user', 'ana', $2::text, $2::text::bytea, $3, 'long',
            'ai', $4, 'members', 'none', $5, $6, $7, $8, $9)""",
            caller.tenant_id, row.memory_id, row.memory_type, row.confidence,
            row.confirmed_at - 400 * DAY, row.confirmed_at, row.last_used_at, row.use_count,
            row.update_time,
        )  # fmt: skip
    await execute(dsn, "ALTER TABLE memories ENABLE TRIGGER memories_update_time")


@pytest.mark.parametrize("eviction", ["confidence", "hybrid"])
async def test_postgresql_chooses_as_python_does(
    runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str, eviction: Eviction
) -> None:
    chance = random.Random(7)
    rows = [
        one(
            f"mem_{number:03}",
            chance.choice([0.7, 0.75, 0.8, 0.8, 0.9, 1.0]),
            confirmed=chance.choice([0, 3, 90, 400, 5000]),
            used=chance.choice([None, 0, 10, 30, 300]),
            uses=chance.choice([0, 1, 2, 40]),
            kind=chance.choice(["fact", "fact", "fact", "correction"]),
            changed=chance.randrange(1000),
        )
        for number in range(120)
    ]
    await stored(client, dsn, acme, rows)
    place = {"scope": "user", "scope_id": "ana", "user_id": "ana", "agent_id": None}

    for keep in (0, 1, 25, 50, 80, 119, 120):
        async with runtime.database.begin(acme.tenant_id) as db:
            found = await EvictionRepository(db, Access(acme.tenant_id)).weakest(
                place, keep=keep, eviction=eviction, limit=1000, now=NOW
            )
        assert list(found) == weakest(rows, keep=keep, eviction=eviction, now=NOW), keep
