"""The look ahead at caps: what SQL counts and compares over many buckets, within which bound."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import true

from app.governance.forgetting.steps import Forgetting, ForgettingRules
from app.identity.agents.config import Eviction, ForgettingPolicy
from app.identity.tenants.access import Access
from app.memory.memories.eviction_repository import Evictable, EvictionRepository, weakest
from app.runtime import Runtime
from tests.support.api import execute, ok
from tests.support.plans import sent_by
from tests.support.tenants import Caller

DAY = timedelta(days=1)
Bucket = tuple[str, str | None]
WAYS: tuple[Eviction, Eviction] = ("confidence", "hybrid")


def some(chance: random.Random, bucket: int, count: int) -> list[Evictable]:
    """Extracted memories with every kind of past."""
    now = datetime.now(UTC)
    return [
        Evictable(
            memory_id=f"mem_{bucket}_{number:03}",
            memory_type=chance.choice(["fact", "fact", "correction"]),
            confidence=chance.choice([0.7, 0.75, 0.8, 0.9]),
            confirmed_at=now - chance.choice([1, 90, 400, 5000]) * DAY,
            last_used_at=chance.choice([None, now - DAY, now - 300 * DAY]),
            use_count=chance.choice([0, 1, 40]),
            update_time=now - chance.randrange(1000) * DAY,
        )
        for number in range(count)
    ]


async def stored(
    client: AsyncClient, dsn: str, caller: Caller, bucket: Bucket, rows: Sequence[Evictable]
) -> None:
    """Extracted memories of a user, or of a user and an agent."""
    user, agent = bucket
    await client.post("/users", json={"user_id": user})
    if agent is not None:
        await client.post("/agents", json={"agent_id": agent, "agent_name": agent})
    await execute(
        dsn,
        """INSERT INTO memories (tenant_id, memory_id, user_id, agent_id, scope, scope_id, content,
        content_hash, memory_type, tier, source, confidence, visibility, embedding_model,
        create_time, last_used_at, use_count, update_time)
        SELECT $1, row.id, $2::text, $3, 'user', $2::text, row.id, row.id::bytea, row.type, 'long',
        'ai', row.confidence, 'members', 'none', row.confirmed, row.used, row.uses, row.updated
        FROM unnest($4::text[], $5::text[], $6::float8[], $7::timestamptz[], $8::timestamptz[],
        $9::int[], $10::timestamptz[])
        AS row(id, type, confidence, confirmed, used, uses, updated)""",
        caller.tenant_id, user, agent, [one.memory_id for one in rows],
        [one.memory_type for one in rows], [one.confidence for one in rows],
        [one.confirmed_at for one in rows], [one.last_used_at for one in rows],
        [one.use_count for one in rows], [one.update_time for one in rows],
    )  # fmt: skip


BUCKETS: list[Bucket] = [("ana", None), ("ana", "coach"), ("ana", "tutor"), ("ben", None)]


@pytest.fixture
async def world(client: AsyncClient, dsn: str, acme: Caller) -> list[list[Evictable]]:
    """Four buckets of 0, 12, 25 and 40 memories, in the order of `BUCKETS` but backwards."""
    chance = random.Random(11)
    found = [some(chance, number, count) for number, count in enumerate((40, 25, 12, 0))]
    for bucket, rows in zip(BUCKETS, found, strict=True):
        await stored(client, dsn, acme, bucket, rows)
    return found


def going(world: list[list[Evictable]], keep: int, eviction: Eviction) -> list[str]:
    """What goes from buckets that hold more than is kept."""
    now = datetime.now(UTC)
    return [
        one
        for rows in world
        if len(rows) > keep
        for one in weakest(rows, keep=keep, eviction=eviction, now=now)
    ]


@pytest.mark.parametrize("keep", [1, 11, 12, 13, 24, 25, 39, 40])
async def test_postgresql_counts_and_compares_as_python_does(
    runtime: Runtime, acme: Caller, world: list[list[Evictable]], keep: int
) -> None:
    async with runtime.database.begin(acme.tenant_id) as db:
        memories = EvictionRepository(db, Access(acme.tenant_id))
        for eviction in WAYS:
            over = await memories.over(keep, eviction, true(), sample=1000)
            assert over.rows == len(over.ids)
            assert sorted(over.ids) == sorted(going(world, keep, eviction))
            few = await memories.over(keep, eviction, true(), sample=3)
            assert (few.rows, list(few.ids)) == (over.rows, list(over.ids[:3]))
        found = await memories.compare(keep, WAYS, true(), rows=1000, shown=1000)

    one, other = ({*going(world, keep, way)} for way in WAYS)
    assert found.both == len(one & other)
    assert list(found.first) == sorted(one - other)
    assert list(found.second) == sorted(other - one)
    assert found.buckets == sum(len(rows) > keep for rows in world)
    assert found.left_out is False


def bounded(runtime: Runtime, cap: int, most: int) -> Forgetting:
    rules = ForgettingRules(ForgettingPolicy(max_facts=cap), timedelta(0), runtime.window_policy)
    return Forgetting(runtime.database, rules, most_compared=most)


@pytest.mark.parametrize(
    ("most", "buckets"),
    [(24, 0), (25, 1), (26, 1), (36, 1), (37, 2), (38, 2), (76, 2), (77, 3), (78, 3)],
)
async def test_buckets_are_compared_until_the_bound_and_the_answer_says_so(
    runtime: Runtime, acme: Caller, world: list[list[Evictable]], most: int, buckets: int
) -> None:
    shown = await bounded(runtime, 5, most).compare(acme.tenant_id, "hybrid")

    # By user and agent, those of no agent last: 25 of the coach's, 12 of the tutor's, then 40.
    compared = [world[1], world[2], world[0]][:buckets]
    one, other = ({*going(compared, 5, way)} for way in WAYS)
    assert (shown.buckets, shown.both) == (buckets, len(one & other))
    assert (shown.only_policy, shown.only_shadow) == (sorted(one - other), sorted(other - one))
    assert shown.truncated is (buckets < 3)


@pytest.mark.parametrize("count", [199, 200, 201])
async def test_200_ids_of_each_way_are_shown(
    runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str, count: int
) -> None:
    now = datetime.now(UTC)
    stale = [
        Evictable(f"mem_stale_{n:03}", "fact", 0.9, now - 900 * DAY, None, 0, now)
        for n in range(count)
    ]
    used = [Evictable(f"mem_used_{n:03}", "fact", 0.75, now, now, 20, now) for n in range(count)]
    await stored(client, dsn, acme, ("ana", None), [*stale, *used])

    shown = await bounded(runtime, count, 50_000).compare(acme.tenant_id, "hybrid")

    assert len(shown.only_policy) == len(shown.only_shadow) == min(count, 200)
    assert {one[:8] for one in shown.only_policy} == {"mem_used"}
    assert shown.both == 0
    assert shown.truncated is (count > 200)


async def test_a_look_at_many_buckets_takes_as_many_statements_as_at_one(
    runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
) -> None:
    chance = random.Random(3)
    forgetting = bounded(runtime, 2, 50_000)

    async def sent() -> tuple[int, Any]:
        with sent_by(runtime.database._units.engine.sync_engine) as statements:
            [step] = await forgetting.due(acme.tenant_id, ["over_capacity"])
            shown = await forgetting.compare(acme.tenant_id, "hybrid")
        return len(statements), (step.due > 0, len(step.sample) > 0, shown.buckets)

    await stored(client, dsn, acme, ("user_0", None), some(chance, 0, 9))
    one = await sent()
    for number in range(1, 30):
        await stored(client, dsn, acme, (f"user_{number}", None), some(chance, number, 9))
    many = await sent()

    assert one[1] == (True, True, 1)
    assert many[1] == (True, True, 30)
    assert many[0] == one[0] > 0


async def test_another_tenants_buckets_are_not_counted(
    client: AsyncClient, stranger: AsyncClient, dsn: str, other: Caller
) -> None:
    await stored(stranger, dsn, other, ("ana", None), some(random.Random(5), 0, 150))

    shown = ok(
        await client.post(
            "/forgetting/run", json={"steps": ["over_capacity"], "eviction": "hybrid"}
        )
    )

    assert shown["steps"][0]["due"] == 0
    assert shown["shadow"] == {
        "eviction": "hybrid", "buckets": 0, "both": 0, "only_policy": [], "only_shadow": [],
        "truncated": False,
    }  # fmt: skip
