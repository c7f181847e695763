"""Days are counted once when they are over; until then their rows are."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.governance.statistics.rollup import AT_ONCE, MOST_DAYS, Rollup
from app.identity.usage.repository import DailyCountRepository
from app.runtime import Runtime
from tests.support.api import append, execute, ok, save
from tests.support.days import utc_today
from tests.support.model_service import app_of
from tests.support.service import client_of
from tests.support.tenants import Caller

VERDICT = """INSERT INTO gate_decisions
    (tenant_id, decision_id, verdict, codes, event, scope, source, create_time)
    VALUES ($1, $2, $3, $4, $5, 'user', 'user', $6)"""


@pytest.fixture
async def client(runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with app_of(runtime) as application, client_of(application, acme.key) as opened:
        yield opened


@pytest.fixture
def rollup(runtime: Runtime) -> Rollup:
    return Rollup(runtime.database, runtime.catalogue)


async def decide(dsn: str, caller: Caller, day: date, *codes: str, event: str | None = None) -> str:
    """A verdict in the last second of a day; its id."""
    number = len(await execute(dsn, "SELECT FROM gate_decisions WHERE tenant_id = $1",
                               caller.tenant_id))  # fmt: skip
    decision_id = f"gat_{number}"
    at = datetime.combine(day + timedelta(1), datetime.min.time(), UTC) - timedelta(seconds=1)
    verdict = "rejected" if codes else "accepted"
    await execute(dsn, VERDICT, caller.tenant_id, decision_id, verdict, list(codes), event, at)
    return decision_id


async def refusals(client: AsyncClient, **params: Any) -> dict[str, dict[str, Any]]:
    answer = ok(await client.get("/stats/refusals", params=params))
    return {row["day"]: row for row in answer["items"]}


async def test_days_are_the_same_before_and_after_they_are_counted(
    client: AsyncClient, rollup: Rollup, acme: Caller, dsn: str
) -> None:
    for before in (3, 3, 1, 0):
        await decide(dsn, acme, utc_today() - timedelta(before), "too_short", "injection")
    await decide(dsn, acme, utc_today() - timedelta(3))
    await decide(dsn, acme, utc_today() - timedelta(3), event="KEEP")
    live = await refusals(client)

    done = await rollup.run(acme.tenant_id)

    # Whether yesterday is over for an hour, the clock decides.
    assert done["days_counted"] in {2, 3}
    assert await refusals(client) == live
    first = live[str(utc_today() - timedelta(3))]
    assert (first["accepted"], first["rejected"]) == (1, 2)
    assert first["by_code"] == {"injection": 2, "too_short": 2}
    assert await rollup.run(acme.tenant_id) == {"days_counted": 0}


async def test_a_day_that_is_counted_beside_the_request_counts_once(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    """As a request sees it that asked which days are over before the counts came."""
    await decide(dsn, acme, utc_today(), "too_short")
    async with runtime.database.begin(acme.tenant_id) as db:
        await DailyCountRepository(db, acme.tenant_id).add(
            {(utc_today(), "verdict", "", "rejected"): 1}
        )

    assert (await refusals(client))[str(utc_today())]["rejected"] == 1


async def test_a_counted_day_stays_when_its_rows_are_gone(
    client: AsyncClient, rollup: Rollup, acme: Caller, dsn: str
) -> None:
    day = utc_today() - timedelta(5)
    await decide(dsn, acme, day, "too_short")
    await rollup.run(acme.tenant_id)
    await execute(dsn, "DELETE FROM gate_decisions WHERE tenant_id = $1", acme.tenant_id)

    await rollup.run(acme.tenant_id)

    assert (await refusals(client))[str(day)]["rejected"] == 1


@pytest.mark.parametrize("before", [MOST_DAYS - 1, MOST_DAYS, MOST_DAYS + 10])
async def test_one_run_counts_all_days_that_are_kept(
    client: AsyncClient, rollup: Rollup, acme: Caller, dsn: str, before: int
) -> None:
    await decide(dsn, acme, utc_today() - timedelta(before), "too_short")
    between = utc_today() - timedelta(AT_ONCE + 1)
    await decide(dsn, acme, between, "too_short")

    done = await rollup.run(acme.tenant_id)

    # Whether yesterday is over for an hour, the clock decides.
    assert done["days_counted"] in {min(before, MOST_DAYS), min(before - 1, MOST_DAYS)}
    assert (await rollup.run(acme.tenant_id))["days_counted"] in {0, 1}
    await execute(dsn, "DELETE FROM gate_decisions WHERE tenant_id = $1", acme.tenant_id)
    assert (await refusals(client))[str(between)]["rejected"] == 1


async def test_two_runs_at_once_count_the_same(
    client: AsyncClient, rollup: Rollup, acme: Caller, dsn: str
) -> None:
    await save(client, "She keeps bees.")
    for before in (4, 3, 2):
        await decide(dsn, acme, utc_today() - timedelta(before), "too_short")

    await asyncio.gather(*(rollup.run(acme.tenant_id) for _ in range(4)))

    shown = await refusals(client)
    assert [shown[str(utc_today() - timedelta(before))]["rejected"] for before in (4, 3, 2)] == [
        1,
        1,
        1,
    ]
    [kept] = ok(await client.get("/stats/memories"))["items"]
    assert (kept["day"], kept["total"]) == (str(utc_today()), 1)


async def test_memories_of_a_day_are_its_last_count(
    client: AsyncClient, rollup: Rollup, acme: Caller
) -> None:
    bees = (await save(client, "She keeps bees.", memory_type="habit"))["memory_id"]
    await rollup.run(acme.tenant_id)
    ok(await client.delete(f"/memories/{bees}"), 204)
    await save(client, "She plays chess.")

    await rollup.run(acme.tenant_id)

    [day] = ok(await client.get("/stats/memories"))["items"]
    assert (day["total"], day["by_status"]) == (1, {"active": 1, "deleted": 1})
    assert "habit" not in day["by_memory_type"]


async def test_duplicates_that_are_left_are_estimated_by_a_sample(
    client: AsyncClient, rollup: Rollup, acme: Caller
) -> None:
    for text in (
        "She drinks green tea every morning.", "She drinks green tea every single morning.",
        "她每天早上喝绿茶。", "She drinks green tea every evening.", "He plays chess in Berlin.",
    ):  # fmt: skip
        await save(client, text, on_duplicate="allow")
    await save(client, "She drinks green tea every morning.", user_id="ben")

    await rollup.run(acme.tenant_id)

    duplicates = ok(await client.get("/stats/memories"))["now"]["duplicates"]
    assert duplicates == {"day": str(utc_today()), "sampled": 6, "found": 2}


async def test_the_sample_is_bounded(client: AsyncClient, runtime: Runtime, acme: Caller) -> None:
    for text in ("She keeps bees.", "He plays chess in Berlin.", "They moved to Bonn."):
        await save(client, text)

    await Rollup(runtime.database, runtime.catalogue, sample=2).run(acme.tenant_id)

    duplicates = ok(await client.get("/stats/memories"))["now"]["duplicates"]
    assert (duplicates["sampled"], duplicates["found"]) == (2, 0)


@pytest.mark.parametrize(("among", "found"), [(2, 0), (3, 1)])
async def test_the_nearest_is_looked_for_among_the_newest(
    client: AsyncClient, runtime: Runtime, acme: Caller, among: int, found: int
) -> None:
    for text in ("She keeps bees.", "He plays chess in Berlin.", "She is keeping bees."):
        await save(client, text, on_duplicate="allow")

    rollup = Rollup(runtime.database, runtime.catalogue, sample=1, among=among)
    await rollup.run(acme.tenant_id)

    duplicates = ok(await client.get("/stats/memories"))["now"]["duplicates"]
    assert (duplicates["sampled"], duplicates["found"]) == (1, found)


@pytest.mark.parametrize(("live_rows", "total"), [(1, 1), (2, 2)])
async def test_more_memories_than_are_counted_live_are_counted_once_a_day(
    client: AsyncClient, runtime: Runtime, acme: Caller, live_rows: int, total: int
) -> None:
    rollup = Rollup(runtime.database, runtime.catalogue, live_rows=live_rows)
    for text in ("She keeps bees.", "He plays chess in Berlin."):
        await save(client, text)
        await rollup.run(acme.tenant_id)

    [day] = ok(await client.get("/stats/memories"))["items"]
    assert day["total"] == total


async def test_items_are_counted_on_the_day_of_each_event(
    client: AsyncClient, runtime: Runtime, rollup: Rollup, acme: Caller, dsn: str
) -> None:
    await save(client, "She drinks green tea every morning.")
    await append(client, "s", "Hello")
    ok(await client.post("/sessions/s/context", json={"query": "green tea"}))
    await runtime.injections.flush(everything=True)
    await execute(
        dsn,
        "UPDATE context_injections SET first_at = now() - interval '4 days', "
        "used_at = now() - interval '3 days', used_estimated_at = now() WHERE tenant_id = $1",
        acme.tenant_id,
    )

    async def by_day() -> dict[str, list[int]]:
        items = ok(await client.get("/stats/effect"))["items"]
        return {
            row["day"]: [row["items"][name] for name in ("injected", "used", "used_estimated")]
            for row in items
            if any(row["items"][name] for name in ("injected", "used", "used_estimated"))
        }

    wanted = {
        str(utc_today() - timedelta(4)): [1, 0, 0],
        str(utc_today() - timedelta(3)): [0, 1, 0],
        str(utc_today()): [0, 0, 1],
    }
    assert await by_day() == wanted

    await rollup.run(acme.tenant_id)

    assert await by_day() == wanted


async def test_a_tenant_without_anything_is_left_alone(
    rollup: Rollup, acme: Caller, dsn: str
) -> None:
    assert await rollup.run(acme.tenant_id) == {"days_counted": 0}

    rows = await execute(dsn, "SELECT FROM daily_counts WHERE tenant_id = $1", acme.tenant_id)
    assert rows == []
