"""When graphs and profiles are refreshed after changes of memories: together, at once for a reader,
and without work where there is nothing new.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import every_page, execute, ok, save
from tests.support.databases import migrated_database, served
from tests.support.graph import known, people
from tests.support.locks import holding, until_somebody_waits
from tests.support.model_service import app_of
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant
from tests.support.working import over, working

LIVES = "The user's friend Bob lives in Munich."
BOB = {("ana", "friend_of", "Bob"), ("Bob", "lives_in", "Munich")}
BUCKET = (
    "SELECT pg_advisory_xact_lock("
    "hashtextextended('$' || chr(31) || 'user' || chr(31) || 'ana', 1))"
)
KINDS = ("graph_tidy", "profile")


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    return await migrated_database(postgres, "refreshes")


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
        await people(opened, "ana", "ben")
        yield opened


async def owed(client: AsyncClient, user_id: str = "ana") -> dict[str, dict[str, Any]]:
    """The pending refreshes of a user, by kind; of each kind there is one."""
    found = [
        job
        for kind in KINDS
        for job in await every_page(client, "/jobs", kind=kind, status="pending", user_id=user_id)
    ]
    by_kind = {job["kind"]: job for job in found}
    assert len(by_kind) == len(found)
    return by_kind


def waits(job: dict[str, Any]) -> timedelta:
    """How long a job has still to wait."""
    return datetime.fromisoformat(job["due_at"]) - datetime.now(UTC)


async def make_due(dsn: str, acme: Caller) -> None:
    await execute(dsn, "UPDATE jobs SET due_at = now() WHERE tenant_id = $1", acme.tenant_id)


async def refreshed(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> dict[str, dict[str, Any]]:
    """Let a worker do what is owed to Ana; the jobs by kind."""
    jobs = await owed(client)
    await make_due(dsn, acme)
    async with working(runtime, dsn):
        return {kind: await over(client, job["job_id"]) for kind, job in jobs.items()}


async def test_burst_of_saves_makes_one_job_of_each_kind(client: AsyncClient) -> None:
    for number in range(20):
        await save(client, f"She owns boat number {number} and paints it in colour {number}.")

    jobs = await owed(client)

    assert jobs.keys() == set(KINDS)
    for job in jobs.values():
        assert timedelta(seconds=45) < waits(job) <= timedelta(minutes=1)


async def test_further_saves_delay_a_refresh_by_two_minutes_at_most(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    await save(client, "She owns a boat.")
    for ago, most in ((50, 60), (90, 30)):
        await execute(
            dsn,
            "UPDATE jobs SET waiting_since = now() - make_interval(secs => $2) "
            "WHERE tenant_id = $1",
            acme.tenant_id, ago,
        )  # fmt: skip
        await save(client, f"She owns {ago} books.")
        for job in (await owed(client)).values():
            assert timedelta(seconds=most - 15) < waits(job) <= timedelta(seconds=most)


async def test_deletion_is_refreshed_sooner_than_new_memories(client: AsyncClient) -> None:
    saved = await save(client, LIVES)
    ok(await client.delete(f"/memories/{saved['memory_id']}"), 204)

    jobs = await owed(client)

    assert waits(jobs["graph_tidy"]) <= timedelta(seconds=2)
    assert waits(jobs["profile"]) <= timedelta(seconds=20)

    await save(client, "She owns a boat.")

    jobs = await owed(client)
    assert waits(jobs["graph_tidy"]) <= timedelta(seconds=2)
    assert waits(jobs["profile"]) <= timedelta(seconds=20)


READS = {
    "entities": ("/graph/entities", "graph_tidy"),
    "relations": ("/graph/relations", "graph_tidy"),
    "neighbours": ("/graph/neighbours", "graph_tidy"),
    "search": ("/graph/search", "graph_tidy"),
    "profile": ("/users/ana/profile", "profile"),
}
PARAMS = {"neighbours": {"name": "Bob"}, "search": {"q": "Bob"}}


@pytest.mark.parametrize("read", list(READS))
async def test_read_brings_the_refresh_forward_of_whom_it_names(
    client: AsyncClient, read: str
) -> None:
    path, kind = READS[read]
    for user_id in ("ana", "ben"):
        await save(client, LIVES, user_id=user_id)
    params = {} if read == "profile" else {"user_id": "ana"} | PARAMS.get(read, {})

    ok(await client.get(path, params=params))

    for name, job in (await owed(client)).items():
        assert (waits(job) <= timedelta(0)) is (name == kind)
    for job in (await owed(client, "ben")).values():
        assert waits(job) > timedelta(seconds=30)


async def test_second_read_finds_what_the_first_brought_forward(
    client: AsyncClient, runtime: Runtime, dsn: str
) -> None:
    async with working(runtime, dsn):
        await save(client, LIVES)
        graph = (await owed(client))["graph_tidy"]
        assert await known(client) == set()
        await over(client, graph["job_id"])

        assert await known(client) == BOB


async def test_read_leaves_a_job_that_waits_for_something_else(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    await save(client, LIVES)
    later = (
        "UPDATE jobs SET due_at = now() + interval '1 hour', {} "
        "WHERE tenant_id = $1 AND kind = 'graph_tidy'"
    )
    for reason in ("deferred_reason = 'daily_quota'", "deferred_reason = NULL, attempts = 2"):
        await execute(dsn, later.format(reason), acme.tenant_id)

        await known(client, user_id="ana")

        assert waits((await owed(client))["graph_tidy"]) > timedelta(minutes=30)


async def test_read_is_answered_while_nothing_can_be_written(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    """A read asks for a refresh only if it can; here the jobs are locked by somebody else."""
    await save(client, LIVES)
    locked = f"SELECT 1 FROM jobs WHERE tenant_id = '{acme.tenant_id}' FOR UPDATE"
    async with holding(dsn, locked):
        assert await known(client, user_id="ana") == set()
    assert waits((await owed(client))["graph_tidy"]) > timedelta(seconds=30)


async def test_job_with_nothing_for_the_graph_waits_for_no_lock(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    await save(client, "She drinks green tea.")
    graph = (await owed(client))["graph_tidy"]

    async with holding(dsn, BUCKET.replace("$", acme.tenant_id)):
        await make_due(dsn, acme)
        async with working(runtime, dsn, profiles=False):
            assert (await over(client, graph["job_id"]))["status"] == "succeeded"


async def test_memory_that_names_what_the_graph_has_is_a_mention(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    """It states no relation, and is read all the same."""
    await save(client, LIVES)
    await refreshed(client, runtime, dsn, acme)
    tall = (await save(client, "Bob is a very tall man."))["memory_id"]
    await refreshed(client, runtime, dsn, acme)

    [bob] = ok(await client.get("/graph/entities", params={"q": "Bob"}))["items"]

    assert tall in ok(await client.get(f"/graph/entities/{bob['entity_id']}/memories"))["items"]


async def test_profile_is_derived_once_from_the_same_memories(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    """The second run reads only: it waits for no lock of a writer."""
    await save(client, "The user works as a nurse.")
    first = (await refreshed(client, runtime, dsn, acme))["profile"]["result"]
    assert (first["unchanged"], len(first["changed"]) > 0) == (False, True)
    again = "UPDATE jobs SET status = 'pending', finished_at = NULL WHERE tenant_id = $1"
    await execute(dsn, again + " AND kind = 'profile'", acme.tenant_id)

    async with holding(dsn, BUCKET.replace("$", acme.tenant_id)):
        second = (await refreshed(client, runtime, dsn, acme))["profile"]["result"]

    assert second == first | {"changed": [], "unchanged": True}


@pytest.mark.parametrize("change", ["save", "delete", "name"])
async def test_profile_is_derived_again_from_anything_else(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller, change: str
) -> None:
    saved = await save(client, "The user works as a nurse.")
    await refreshed(client, runtime, dsn, acme)
    if change == "save":
        await save(client, "The user lives in Lisbon.")
    elif change == "delete":
        ok(await client.delete(f"/memories/{saved['memory_id']}"), 204)
    else:
        ok(await client.patch("/users/ana", json={"user_name": "Ana Maria"}))
        again = "UPDATE jobs SET status = 'pending', finished_at = NULL WHERE tenant_id = $1"
        await execute(dsn, again + " AND kind = 'profile'", acme.tenant_id)

    result = (await refreshed(client, runtime, dsn, acme))["profile"]["result"]

    assert result["unchanged"] is False


async def test_what_a_cancelled_refresh_was_to_forget_the_next_one_forgets(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    saved = [await save(client, text) for text in (LIVES, "The user works as a nurse.")]
    await refreshed(client, runtime, dsn, acme)
    for memory in saved:
        ok(await client.delete(f"/memories/{memory['memory_id']}"), 204)
    for job in (await owed(client)).values():
        ok(await client.post(f"/jobs/{job['job_id']}/cancel"))

    await save(client, "The user owns a boat.")
    await refreshed(client, runtime, dsn, acme)

    assert await known(client) == set()
    for path in ("/users/ana/profile", "/users/ana/profile/history"):
        assert "nurse" not in (await client.get(path)).text


@pytest.mark.parametrize("change", ["edit", "delete"])
async def test_changes_of_two_memories_of_a_user_never_wait_for_each_other(
    client: AsyncClient, dsn: str, acme: Caller, change: str
) -> None:
    """Each orders a refresh of the graph and one of the profile, and waits for the graph first."""
    memory = await save(client, "She keeps bees in Porto.")
    path = f"/memories/{memory['memory_id']}"
    job = "SELECT 1 FROM jobs WHERE tenant_id = '{}' AND kind = '{}' FOR UPDATE {}"
    async with holding(dsn, job.format(acme.tenant_id, "graph_tidy", "")) as holder:
        changing = asyncio.create_task(
            client.delete(path)
            if change == "delete"
            else client.patch(path, json={"content": "She keeps bees in Faro."})
        )
        await until_somebody_waits(dsn, holder)
        async with holding(dsn, job.format(acme.tenant_id, "profile", "NOWAIT")):
            pass

    assert (await changing).is_success
