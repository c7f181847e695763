"""A worker killed while it derives a profile: another derives it, and each value stands once."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from tests.profiles.profiles_support import profile, values
from tests.support.api import execute, ok, save
from tests.support.chat_behaviours import held, says
from tests.support.databases import migrated_database, served
from tests.support.locks import holding, until_somebody_waits
from tests.support.model_service import app_of, asking
from tests.support.openai_server import OpenAIServer
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant
from tests.support.worker_processes import worker_process
from tests.support.working import over, until

pytestmark = pytest.mark.slow

SLOT = "attributes.profession"
SAID = "The user works as a nurse."

STOPS = {
    # Everything is stored but the history, and nothing is committed.
    "in_the_middle_of_storing": "LOCK TABLE profile_history IN EXCLUSIVE MODE",
    # The model has told; the buckets' lock is all that is missing.
    "before_storing": (
        "SELECT pg_advisory_xact_lock("
        "hashtextextended('$' || chr(31) || 'user' || chr(31) || 'ana', 1))"
    ),
}


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    """A database without anybody else's jobs."""
    return await migrated_database(postgres, "profiles_crashes")


@pytest.fixture(scope="module")
async def runtime(dsn: str, running_server: OpenAIServer) -> AsyncIterator[Runtime]:
    async with open_runtime(asking(running_server), served(dsn)) as opened:
        yield opened


@pytest.fixture
async def acme(runtime: Runtime) -> Caller:
    return await make_tenant(runtime)


@pytest.fixture
async def client(runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with app_of(runtime) as application, client_of(application, acme.key) as opened:
        ok(await opened.post("/users", json={"user_id": "ana"}), 201)
        agent = ok(await opened.get("/users/ana"))["agent_id"]
        config = {"profile_model": "openai/teller"}
        ok(await opened.patch(f"/agents/{agent}", json={"config": config}))
        yield opened


@pytest.fixture
def start(dsn: str, running_server: OpenAIServer):
    """Start a worker that asks the scripted model."""

    def starting():
        return worker_process(dsn, openai_base_url=running_server.base_url, openai_api_key="key")

    return starting


def tells(text: str):
    told = {"slot": SLOT, "text": text, "entries": None, "evidence": ["m1"]}
    return says({"values": [told]})


async def stored(dsn: str, caller: Caller) -> tuple[list[Any], list[Any]]:
    """Values of the tenant's profiles, and the lines of their history."""
    present = await execute(
        dsn, "SELECT slot, value FROM profile_values WHERE tenant_id = $1", caller.tenant_id
    )
    lines = await execute(
        dsn,
        "SELECT slot, event, before, after, job_id FROM profile_history WHERE tenant_id = $1 "
        "ORDER BY create_time",
        caller.tenant_id,
    )
    return [tuple(one) for one in present], [tuple(one) for one in lines]


async def kept(dsn: str, caller: Caller) -> list[str]:
    """For what answers of models wait to be used."""
    rows = await execute(
        dsn, "SELECT operation FROM model_answers WHERE tenant_id = $1", caller.tenant_id
    )
    return [row["operation"] for row in rows]


async def told_once(
    client: AsyncClient, dsn: str, caller: Caller, job: dict[str, Any], text: str
) -> None:
    """The value stands, its history has one line, and no job is owed."""
    assert (job["status"], job["attempts"]) == ("succeeded", 2)
    assert job["result"]["changed"] == [SLOT]
    value = f'"{text}"'
    assert await stored(dsn, caller) == (
        [(SLOT, value)],
        [(SLOT, "SET", None, value, job["job_id"])],
    )
    assert values(await profile(client)) == {"profession": text}
    jobs = ok(await client.get("/jobs", params={"kind": "profile"}))["items"]
    assert [one["job_id"] for one in jobs] == [job["job_id"]]


async def ordered(client: AsyncClient, dsn: str) -> str:
    """A memory, and the order to tell of it, with no other work beside it; the id of the job."""
    await save(client, SAID)
    await execute(dsn, "DELETE FROM jobs WHERE status = 'pending'")
    return ok(await client.post("/users/ana/profile/derive"), 202)["job_id"]


async def test_worker_killed_during_the_model_call_is_replaced(
    client, chat, start, dsn, acme
) -> None:
    release = threading.Event()
    chat.script(held(release, tells("a doctor")))
    chat.otherwise = tells("护士")
    job_id = await ordered(client, dsn)
    async with start() as worker:
        await until(lambda: len(chat.requests) == 1)
        await worker.kill()
    release.set()
    assert await stored(dsn, acme) == ([], [])

    async with start():
        job = await over(client, job_id)

    # What the first was told is nobody's any more.
    await told_once(client, dsn, acme, job, "护士")
    assert len(chat.requests) == 2


@pytest.mark.parametrize("where", STOPS)
async def test_worker_killed_with_an_answer_is_replaced(
    client, chat, start, dsn, acme, where
) -> None:
    chat.otherwise = tells("a nurse")
    job_id = await ordered(client, dsn)
    async with holding(dsn, STOPS[where].replace("$", acme.tenant_id)) as holder:
        async with start() as worker:
            await until_somebody_waits(dsn, holder)
            await worker.kill()
        assert await stored(dsn, acme) == ([], [])
        assert ok(await client.get(f"/jobs/{job_id}"))["status"] == "running"
        assert await kept(dsn, acme) == ["profile"]

    async with start():
        job = await over(client, job_id)

    await told_once(client, dsn, acme, job, "a nurse")
    # The first answer was paid for, and serves.
    assert len(chat.requests) == 1
    [row] = ok(await client.get("/usage"))["items"]
    assert (row["operation"], row["calls"]) == ("profile", 1)
    assert await kept(dsn, acme) == []


async def test_derivation_is_stored_once_when_the_first_worker_resumes(
    client, chat, start, dsn, acme
) -> None:
    """It was frozen, not killed: what it was told late is refused."""
    release = threading.Event()
    chat.script(held(release, tells("a doctor")))
    chat.otherwise = tells("a nurse")
    job_id = await ordered(client, dsn)
    async with start() as frozen:
        await until(lambda: len(chat.requests) == 1)
        frozen.freeze()
        async with start():
            job = await over(client, job_id)
        release.set()
        frozen.thaw()
        await asyncio.sleep(2)
        assert frozen.running

    await told_once(client, dsn, acme, job, "a nurse")
