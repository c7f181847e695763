"""Look-ups are counted in the process and written later, by one statement."""

import asyncio
import os
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import text

from app.identity.usage.activity import Activity
from app.identity.usage.repository import DailyCountRepository, DailySum
from app.runtime import Runtime
from tests.support.api import execute, ok, save
from tests.support.databases import served
from tests.support.locks import committing, until_somebody_waits
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = date(2026, 3, 1)


AGENTS = """INSERT INTO agents (tenant_id, agent_id, agent_name)
    SELECT $1, unnest($2::text[]), 'An agent'"""


@pytest.fixture(autouse=True)
async def agents(dsn: str, acme: Caller) -> None:
    await execute(dsn, AGENTS, acme.tenant_id, ["a", "b", "c", "d", "written"])


async def counted(runtime: Runtime, caller: Caller) -> dict[tuple[str, str, str], int]:
    """What is stored of DAY, by name, agent and label."""
    async with runtime.database.begin(caller.tenant_id) as db:
        rows = await DailyCountRepository(db, caller.tenant_id).list_counts(
            ("search", "search_query", "context", "context_query"), DAY, DAY
        )
    return {(row.name, row.agent_id, row.label): row.number for row in rows}


async def test_look_ups_are_added_up_by_agent_and_label(runtime: Runtime, acme: Caller) -> None:
    activity = Activity(runtime.database)
    activity.note(acme.tenant_id, "a", "search", NOON, 0.003, hit=True)
    activity.note(acme.tenant_id, "a", "search", NOON, 0.004, hit=False)
    activity.note(acme.tenant_id, None, "context", NOON, 3600, hit=None)
    await activity.flush(everything=True)
    activity.note(acme.tenant_id, "a", "search", NOON, 0.003, hit=True)
    await activity.flush(everything=True)

    assert await counted(runtime, acme) == {
        ("search", "a", "5"): 3, ("search_query", "a", "hit"): 2, ("search_query", "a", "miss"): 1,
        ("context", "", "longer"): 1,
    }  # fmt: skip


async def test_a_write_waits_for_the_pause(runtime: Runtime, acme: Caller) -> None:
    now = 100.0
    activity = Activity(runtime.database, pause=5.0, clock=lambda: now)
    activity.note(acme.tenant_id, None, "context", NOON, 0.1, hit=None)
    now = 104.9
    await activity.flush()
    assert await counted(runtime, acme) == {}

    now = 105.0
    await activity.flush()

    assert sum((await counted(runtime, acme)).values()) == 1


async def test_counts_wait_up_to_the_limit(runtime: Runtime, acme: Caller) -> None:
    activity = Activity(runtime.database, waiting=2)
    for agent in ("a", "b", "c", "a"):
        activity.note(acme.tenant_id, agent, "context", NOON, 0.1, hit=None)

    await activity.flush(everything=True)
    activity.note(acme.tenant_id, "d", "context", NOON, 0.1, hit=None)
    await activity.flush(everything=True)

    found = {agent: number for (_, agent, _), number in (await counted(runtime, acme)).items()}
    assert found == {"a": 2, "b": 1, "d": 1}


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(4, {"a": 2, "b": 1, "c": 1}), (3, {"a": 2, "b": 1, "c": 1}), (2, {"a": 2, "b": 1, "": 1})],
    ids=["below", "at", "above"],
)
async def test_what_a_tenant_counts_beyond_its_places_is_of_no_agent(
    runtime: Runtime, acme: Caller, other: Caller, limit: int, expected: dict[str, int]
) -> None:
    activity = Activity(runtime.database, waiting=4, of_one_tenant=limit)
    for agent in ("a", "b", "c", "a"):
        activity.note(acme.tenant_id, agent, "context", NOON, 0.1, hit=None)
    activity.note(other.tenant_id, None, "context", NOON, 0.1, hit=None)

    await activity.flush(everything=True)

    found = {agent: number for (_, agent, _), number in (await counted(runtime, acme)).items()}
    assert (found, len(await counted(runtime, other))) == (expected, 1)


async def test_agents_that_do_not_exist_are_counted_as_none(
    runtime: Runtime, acme: Caller, other: Caller, dsn: str
) -> None:
    """Also one that another tenant has, and several of them together with look-ups of none."""
    await execute(dsn, AGENTS, other.tenant_id, ["theirs"])
    activity = Activity(runtime.database)
    for agent in ("a", "theirs", "invented", "gone", None):
        activity.note(acme.tenant_id, agent, "context", NOON, 0.1, hit=None)

    await activity.flush(everything=True)

    assert await counted(runtime, acme) == {("context", "a", "200"): 1, ("context", "", "200"): 4}


async def test_replaced_counts_of_agents_that_do_not_exist_are_of_none(
    runtime: Runtime, acme: Caller
) -> None:
    async with runtime.database.begin(acme.tenant_id) as db:
        await DailyCountRepository(db, acme.tenant_id).replace(
            DAY, ["search"], [DailySum(DAY, "search", agent, "5", 2) for agent in ("a", "gone", "")]
        )

    assert await counted(runtime, acme) == {("search", "a", "5"): 2, ("search", "", "5"): 4}


async def test_a_write_waits_for_the_erasure_of_an_agent(
    runtime: Runtime, acme: Caller, dsn: str
) -> None:
    activity = Activity(runtime.database)
    activity.note(acme.tenant_id, "a", "context", NOON, 0.1, hit=None)
    erase = f"DELETE FROM agents WHERE agent_id = 'a' AND tenant_id = '{acme.tenant_id}'"
    async with committing(dsn, erase) as eraser:
        writing = asyncio.create_task(activity.flush(everything=True))
        await until_somebody_waits(dsn, eraser)

    await writing

    assert await counted(runtime, acme) == {("context", "", "200"): 1}


async def test_an_erasure_of_an_agent_waits_for_a_write_and_takes_it_along(
    runtime: Runtime, acme: Caller, client: AsyncClient, dsn: str
) -> None:
    async with runtime.database.begin(acme.tenant_id) as db:
        await DailyCountRepository(db, acme.tenant_id).add({(DAY, "search", "a", "5"): 1})
        writer = await db.scalar(text("SELECT pg_backend_pid()"))
        erasing = asyncio.create_task(client.delete("/agents/a", params={"confirm": True}))
        await until_somebody_waits(dsn, writer)

    ok(await erasing)

    assert await counted(runtime, acme) == {}


@pytest.mark.parametrize("erased", ["agents", "users"])
async def test_writes_and_erasures_at_once_do_not_block_each_other_for_ever(
    runtime: Runtime, acme: Caller, client: AsyncClient, dsn: str, erased: str
) -> None:
    """An agent's counts go with it, also those that are written meanwhile; a user has none."""
    turns, writers = 5, 4
    for turn in range(turns):
        await execute(dsn, f"{AGENTS} ON CONFLICT DO NOTHING", acme.tenant_id, ["coach"])
        await save(client, "She drinks tea.", user_id=f"u{turn}")
        several = [Activity(runtime.database) for _ in range(writers)]
        for number, activity in enumerate(several):
            for agent in ("a", "coach", "b") if number % 2 else ("b", "coach", "a"):
                activity.note(acme.tenant_id, agent, "search", NOON, 0.1, hit=True)
        address = f"/users/u{turn}" if erased == "users" else "/agents/coach"
        answer, *_ = await asyncio.gather(
            client.delete(address, params={"confirm": True}),
            *(activity.flush(everything=True) for activity in several),
        )
        ok(answer)

    found = {key[1]: number for key, number in (await counted(runtime, acme)).items()}
    written = turns * writers
    assert (found["a"], found["b"]) == (written, written)
    assert found.get("coach") == (written if erased == "users" else None)


async def test_a_write_takes_some_tenants_and_the_next_the_others(
    runtime: Runtime, acme: Caller, other: Caller
) -> None:
    activity = Activity(runtime.database, tenants=1, pause=0.0)
    for caller in (acme, other):
        activity.note(caller.tenant_id, None, "context", NOON, 0.1, hit=None)

    await activity.flush()
    assert (len(await counted(runtime, acme)), len(await counted(runtime, other))) == (1, 0)
    await activity.flush()

    assert (len(await counted(runtime, acme)), len(await counted(runtime, other))) == (1, 1)


async def test_two_processes_add_to_the_same_counts(runtime: Runtime, acme: Caller) -> None:
    several = [Activity(runtime.database) for _ in range(6)]
    for number, activity in enumerate(several):
        agents = ("a", "b", "c") if number % 2 else ("c", "b", "a")
        for agent in agents:
            activity.note(acme.tenant_id, agent, "search", NOON, 0.1, hit=True)

    await asyncio.gather(*(activity.flush(everything=True) for activity in several))

    assert set((await counted(runtime, acme)).values()) == {6}


async def test_what_could_not_be_written_is_written_the_next_time(
    runtime: Runtime, acme: Caller
) -> None:
    class DownOnce:
        down = True

        def begin(self, tenant_id: str) -> Any:
            if self.down:
                self.down = False
                activity.note(tenant_id, None, "context", NOON, 0.1, hit=None)
                raise ConnectionError
            return runtime.database.begin(tenant_id)

    activity = Activity(DownOnce())
    activity.note(acme.tenant_id, None, "context", NOON, 0.1, hit=None)
    with pytest.raises(ConnectionError):
        await activity.flush(everything=True)

    await activity.flush(everything=True)

    assert await counted(runtime, acme) == {("context", "", "200"): 2}


async def test_a_killed_process_loses_what_it_had_not_written(
    runtime: Runtime, acme: Caller, dsn: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, Path(__file__).with_name("counting_process.py"), acme.tenant_id,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"DATABASE_URL": served(dsn), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"counted\n"

    process.kill()
    await process.wait()

    assert await counted(runtime, acme) == {
        ("search", "written", "200"): 1, ("search_query", "written", "hit"): 1,
    }  # fmt: skip


async def test_replaced_counts_leave_those_of_other_names(runtime: Runtime, acme: Caller) -> None:
    async with runtime.database.begin(acme.tenant_id) as db:
        counts = DailyCountRepository(db, acme.tenant_id)
        await counts.add({(DAY, "search", "a", "5"): 1, (DAY, "context", "a", "5"): 2})
        await counts.replace(DAY, ("context",), [DailySum(DAY, "context", "b", "5", 7)])

    assert await counted(runtime, acme) == {("search", "a", "5"): 1, ("context", "b", "5"): 7}
