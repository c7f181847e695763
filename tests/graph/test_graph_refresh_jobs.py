"""What changes of memories owe the graph, done by a worker, whatever changed them and whoever dies.

In a database of its own: another file's workers would do what is owed here.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.identity.tenants.schemas import TenantPatch
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import append, every_page, execute, ok, save
from tests.support.databases import migrated_database, served
from tests.support.graph import known, names, people, refreshed, state
from tests.support.locks import holding, until_somebody_waits
from tests.support.model_service import app_of
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant, tenants
from tests.support.tiers import first_fast
from tests.support.worker_processes import expire_leases, worker_process
from tests.support.working import over, working

LIVES = "The user's friend Bob lives in Munich."
PLAYS = "The user's friend Carol lives in Bonn."
LONG = timedelta(days=400)
BOB = {("ana", "friend_of", "Bob"), ("Bob", "lives_in", "Munich")}
CAROL = {("ana", "friend_of", "Carol"), ("Carol", "lives_in", "Bonn")}


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    return await migrated_database(postgres, "graph_upkeep")


@pytest.fixture(scope="module")
async def runtime(dsn: str) -> AsyncIterator[Runtime]:
    async with open_runtime(Settings(_env_file=None), served(dsn)) as opened:
        yield opened


@pytest.fixture
async def acme(runtime: Runtime) -> Caller:
    return await make_tenant(runtime)


@pytest.fixture
async def client(runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with app_of(runtime) as application, client_of(application, acme.key) as opened:
        await people(opened, "ana")
        yield opened


async def rows(dsn: str, tenant_id: str) -> set[str]:
    """Names that the tables hold, whether anybody sees them or not."""
    statement = (
        "SELECT name FROM graph_entities WHERE tenant_id = $1 "
        "UNION SELECT alias FROM graph_aliases WHERE tenant_id = $1"
    )
    return {row["name"] for row in await execute(dsn, statement, tenant_id)}


async def coach(client: AsyncClient, **policy: Any) -> None:
    """An agent with a policy of its own."""
    body = {"agent_id": "coach", "agent_name": "Coach", "config": {"forgetting": policy}}
    ok(await client.post("/agents", json=body), 201)


async def forget(client: AsyncClient, runtime: Runtime, dsn: str, *steps: str) -> Mapping[str, int]:
    """The forgetting run over HTTP; what went, by step."""
    body = {"dry_run": False, "steps": list(steps)}
    ordered = ok(await client.post("/forgetting/run", json=body), 202)
    async with working(runtime, dsn):
        job = await over(client, ordered["job_id"])
    assert job["status"] == "succeeded"
    result: Mapping[str, int] = job["result"]
    return result


@pytest.mark.parametrize("hard", [False, True])
async def test_bulk_deletion_refreshes_the_graph(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller, hard: bool
) -> None:
    await save(client, LIVES)
    await save(client, PLAYS)
    await state(client, "Dora", "likes", "tea")
    await refreshed(client, runtime, dsn, acme.tenant_id)
    assert await known(client) == BOB | CAROL | {("Dora", "likes", "tea")}

    body = {"user_id": "ana", "confirm": True, "hard": hard}
    assert ok(await client.post("/memories/delete", json=body))["deleted"] == 2
    assert await names(client) == {"Dora", "tea"}
    await refreshed(client, runtime, dsn, acme.tenant_id)

    assert await names(client) == {"Dora", "tea"}
    assert await known(client, include_closed=True) == {("Dora", "likes", "tea")}
    if hard:
        assert await rows(dsn, acme.tenant_id) == {"Dora", "tea"}


async def test_forgetting_refreshes_the_graph(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    """Archived it is closed; removed at last it leaves no name."""
    await coach(client, source_deleted_days=5)
    gone = (await save(client, LIVES, agent_id="coach"))["memory_id"]
    await save(client, PLAYS, agent_id="coach")
    await refreshed(client, runtime, dsn, acme.tenant_id)
    await execute(
        dsn,
        "UPDATE memories SET source_deleted_at = now() - $2::interval WHERE memory_id = $1",
        gone, LONG,
    )  # fmt: skip

    step = "source_deleted"
    assert (await forget(client, runtime, dsn, step))[step] == 1
    await refreshed(client, runtime, dsn, acme.tenant_id)
    assert await known(client) == CAROL
    assert await known(client, include_closed=True) == BOB | CAROL

    await execute(
        dsn,
        "UPDATE memory_history SET create_time = now() - $2::interval WHERE tenant_id = $1",
        acme.tenant_id, LONG,
    )  # fmt: skip
    assert (await forget(client, runtime, dsn, "purged"))["purged"] == 1
    await refreshed(client, runtime, dsn, acme.tenant_id)
    assert await known(client, include_closed=True) == CAROL
    assert await rows(dsn, acme.tenant_id) == {"ana", "Carol", "Bonn"}


async def test_eviction_refreshes_the_graph(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    await coach(client, max_facts=1)
    await save(client, LIVES, agent_id="coach", confidence=0.75)
    await save(client, PLAYS, agent_id="coach", confidence=0.95)
    await execute(dsn, "UPDATE memories SET source = 'ai' WHERE tenant_id = $1", acme.tenant_id)
    await refreshed(client, runtime, dsn, acme.tenant_id)
    assert await known(client) == BOB | CAROL

    assert (await forget(client, runtime, dsn, "over_capacity"))["over_capacity"] == 1
    await refreshed(client, runtime, dsn, acme.tenant_id)

    assert await known(client) == CAROL


@pytest.mark.parametrize("alone", [True, False])
async def test_erasure_of_a_user_refreshes_an_agents_graph(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller, alone: bool
) -> None:
    """The agent's graph names nobody of whom only the person spoke."""
    ok(await client.post("/agents", json={"agent_id": "helper", "agent_name": "H"}), 201)
    await append(client, "talk", "Bob lives in Munich.", agent_id="helper")
    shared: dict[str, Any] = {"user_id": None, "agent_id": "helper", "scope": "agent"}
    told = (await save(client, LIVES, **shared))["memory_id"]
    if not alone:
        said = "Her friend Bob lives in Munich."
        await save(client, said, **shared, on_duplicate="allow")
    await state(client, "Refunds", "take", "five days", **shared)
    await execute(
        dsn,
        "UPDATE memories SET source = 'ai', source_id = 'talk' "
        "WHERE tenant_id = $1 AND memory_id = $2",
        acme.tenant_id, told,
    )  # fmt: skip
    await refreshed(client, runtime, dsn, acme.tenant_id)
    assert {"Bob", "Munich"} <= await names(client)
    before = await known(client)

    ok(await client.delete("/users/ana", params={"confirm": True}))
    assert ("Bob", "lives_in", "Munich") not in await known(client, include_closed=True)
    await refreshed(client, runtime, dsn, acme.tenant_id)

    assert ("Bob", "lives_in", "Munich") in before
    kept = {"Refunds", "five days"} | (set() if alone else {"Bob", "Munich"})
    assert await rows(dsn, acme.tenant_id) == kept
    assert await names(client) == kept


async def test_job_counts_writes_in_every_agents_graph(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    await coach(client)
    await save(client, LIVES)
    await save(client, PLAYS, agent_id="coach")
    await refreshed(client, runtime, dsn, acme.tenant_id)

    [job] = await every_page(client, "/jobs", kind="graph_tidy")

    assert (job["result"]["relations"], job["result"]["entities"]) == (4, 6)


async def test_refresh_of_a_disabled_tenant_waits(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    await save(client, LIVES)
    [owed] = await every_page(client, "/jobs", kind="graph_tidy")
    service = tenants(runtime)
    await service.patch(acme.tenant_id, TenantPatch(status="disabled"), expected=None)
    due = "UPDATE jobs SET due_at = now() WHERE tenant_id = $1"
    await execute(dsn, due, acme.tenant_id)
    deferred = "SELECT 1 FROM jobs WHERE job_id = $1 AND deferred_reason = 'tenant_disabled'"

    async with working(runtime, dsn):
        async with asyncio.timeout(PATIENCE):
            while not await execute(dsn, deferred, owed["job_id"]):  # noqa: ASYNC110 (403)
                await asyncio.sleep(0.02)

    assert await rows(dsn, acme.tenant_id) == set()
    await service.patch(acme.tenant_id, TenantPatch(status="enabled"), expected=None)
    await refreshed(client, runtime, dsn, acme.tenant_id)
    assert await known(client) == BOB


STOPS = {
    "before it looks": "SELECT pg_advisory_xact_lock("
    "hashtextextended('$' || chr(31) || 'user' || chr(31) || 'ana', 1))",
    "with new names written": "LOCK TABLE graph_mentions IN SHARE ROW EXCLUSIVE MODE",
    "before the last name goes": "SELECT 1 FROM graph_entities "
    "WHERE tenant_id = '$' AND name = 'Munich' FOR KEY SHARE",
}


@first_fast("stop", sorted(STOPS, reverse=True))
async def test_refresh_of_a_killed_worker_is_finished_by_another(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller, stop: str
) -> None:
    first = (await save(client, LIVES))["memory_id"]
    await refreshed(client, runtime, dsn, acme.tenant_id)
    gone = await client.delete(f"/memories/{first}", params={"hard": True})
    assert gone.is_success, gone.text
    await save(client, PLAYS)
    jobs = "UPDATE jobs SET due_at = now() WHERE tenant_id = $1 AND kind = 'graph_tidy'"
    # Nothing else of the tenant is owed that would wait for the same locks.
    await execute(dsn, "DELETE FROM jobs WHERE status = 'pending' AND kind <> 'graph_tidy'")
    before = await rows(dsn, acme.tenant_id)
    assert before == {"ana", "Bob", "Munich"}

    async with holding(dsn, STOPS[stop].replace("$", acme.tenant_id)) as holder:
        async with worker_process(dsn) as worker:
            await execute(dsn, jobs, acme.tenant_id)
            await until_somebody_waits(dsn, holder)
            await worker.kill()
        assert await rows(dsn, acme.tenant_id) == before

    [owed] = [
        one for one in await every_page(client, "/jobs", kind="graph_tidy")
        if one["status"] != "succeeded"
    ]  # fmt: skip
    await expire_leases(dsn)
    async with worker_process(dsn):
        assert (await over(client, owed["job_id"]))["status"] == "succeeded"
    assert await rows(dsn, acme.tenant_id) == {"ana", "Carol", "Bonn"}
    assert await known(client, include_closed=True) == CAROL
