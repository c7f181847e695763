"""Somebody is erased while a model is still being asked about them; over real connections."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from tests.support.api import append, dump, execute, ok, problem, save, tables_with
from tests.support.chat_behaviours import by_question, decides, entry, extracts, held, says
from tests.support.databases import migrated_database, served
from tests.support.folders import folder, ingested
from tests.support.model_service import app_of, asking
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant
from tests.support.working import until, working

WORDS = "桑给巴尔夜莺"


@pytest.fixture(scope="module")
def running_server():
    with openai_server() as server:
        yield server


@pytest.fixture(scope="module")
async def flight_dsn(postgres: EmbeddedPostgres) -> str:
    """A database without anybody else's jobs."""
    return await migrated_database(postgres, "in_flight")


@pytest.fixture(scope="module")
async def flight(flight_dsn: str, running_server: OpenAIServer) -> AsyncIterator[Runtime]:
    settings = asking(running_server, extraction_model="openai/reader", max_extractions=1000)
    async with open_runtime(settings, served(flight_dsn)) as runtime:
        yield runtime


@pytest.fixture
async def tenant(flight: Runtime) -> Caller:
    return await make_tenant(flight)


@pytest.fixture
async def client(flight: Runtime, tenant: Caller) -> AsyncIterator[AsyncClient]:
    async with app_of(flight) as application, client_of(application, tenant.key) as opened:
        yield opened


def everything(lines):
    return [entry(line["text"], line["id"]) for line in lines if line["role"] == "user"]


async def _close_a_session(client: AsyncClient) -> None:
    """What reads it belongs to the session, which goes too."""
    await append(client, "talk", f"我最喜欢{WORDS}。")
    ok(await client.post("/sessions/talk/end"))


async def _order_memories(client: AsyncClient) -> None:
    """An order that nobody waits for."""
    order = {"messages": f"我看见了{WORDS}。", "user_id": "ana", "session_id": "talk"}
    ok(await client.post("/memories?async=true", json=order), 202)


# One at a time: runs of one user are made one after the other.
@pytest.mark.parametrize("tell", [_close_a_session, _order_memories])
async def test_a_run_in_the_middle_brings_nobody_back(
    flight: Runtime,
    client: AsyncClient,
    tenant: Caller,
    flight_dsn: str,
    running_server: OpenAIServer,
    tell: Callable[[AsyncClient], Awaitable[None]],
) -> None:
    running_server.reset()
    chat = running_server.chat
    release = threading.Event()
    memories = held(release, extracts(everything))
    chat.otherwise = by_question(
        memories=memories, decisions=decides(lambda _, _near: {"event": "ADD"})
    )
    await tell(client)
    try:
        async with working(flight, flight_dsn):
            # The model is being asked.
            await until(lambda: len(chat.requests) >= 1)
            ok(await client.delete("/users/ana", params={"hard": True, "confirm": True}))
            release.set()
            await _settled(flight_dsn, tenant)
    finally:
        release.set()

    assert tables_with(WORDS, await dump(flight_dsn, tenant.tenant_id)) == []
    problem(await client.get("/users/ana"), 404, "user_not_found")
    # And its own follow-up does not either: the session and its jobs are gone.
    problem(await client.get("/sessions/talk"), 404, "session_not_found")


async def test_a_profile_in_the_middle_brings_nobody_back(
    flight: Runtime,
    client: AsyncClient,
    tenant: Caller,
    flight_dsn: str,
    running_server: OpenAIServer,
) -> None:
    """The model tells of a person who is gone by then."""
    running_server.reset()
    chat = running_server.chat
    release = threading.Event()
    told = {
        "slot": "attributes.profession", "text": WORDS, "entries": None, "evidence": ["m1"],
    }  # fmt: skip
    chat.otherwise = held(release, says({"values": [told]}))
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    agent = ok(await client.get("/users/ana"))["agent_id"]
    config = {"profile_model": "openai/teller"}
    ok(await client.patch(f"/agents/{agent}", json={"config": config}))
    await save(client, f"她是{WORDS}的饲养员。")
    job = ok(await client.post("/users/ana/profile/derive"), 202)["job_id"]
    try:
        async with working(flight, flight_dsn):
            await until(lambda: len(chat.requests) >= 1)
            ok(await client.delete("/users/ana", params={"hard": True, "confirm": True}))
            release.set()
            await _settled(flight_dsn, tenant)
    finally:
        release.set()

    left = await dump(flight_dsn, tenant.tenant_id)
    assert tables_with(WORDS, left) == []
    assert (left["profiles"], left["profile_values"], left["profile_history"]) == ([], [], [])
    problem(await client.get("/users/ana"), 404, "user_not_found")
    problem(await client.get("/users/ana/profile"), 404, "user_not_found")
    problem(await client.get(f"/jobs/{job}"), 404, "job_not_found")


async def test_what_a_file_tells_in_the_middle_brings_nobody_back(
    flight: Runtime,
    client: AsyncClient,
    tenant: Caller,
    flight_dsn: str,
    running_server: OpenAIServer,
) -> None:
    """The model reads a file of hers for memories, and answers when she is gone."""
    running_server.reset()
    chat = running_server.chat
    release = threading.Event()
    chat.otherwise = by_question(
        memories=held(release, extracts(lambda lines: [entry(WORDS, lines[0]["id"])])),
        decisions=decides(lambda _, _near: {"event": "ADD"}),
    )
    folder_id = await folder(client)
    try:
        async with working(flight, flight_dsn):
            file = await ingested(client, folder_id, "a.txt", f"{WORDS}在花园唱歌。".encode())
            path = f"/files/{file['file_id']}/extract"
            ok(await client.post(path, json={}), 202)
            await until(lambda: len(chat.requests) >= 1)
            ok(await client.delete("/users/ana", params={"hard": True, "confirm": True}))
            release.set()
            await _settled(flight_dsn, tenant)
    finally:
        release.set()

    left = await dump(flight_dsn, tenant.tenant_id)
    assert tables_with(WORDS, left) == []
    assert left["memories"] == []
    problem(await client.get("/users/ana"), 404, "user_not_found")


async def _settled(dsn: str, tenant: Caller) -> None:
    """Wait until no job of the tenant is owed or running; what was in hand ends with the worker."""
    async with asyncio.timeout(PATIENCE):
        while await execute(  # noqa: ASYNC110 (another task brings it about)
            dsn,
            "SELECT 1 FROM jobs WHERE tenant_id = $1 AND status IN ('pending', 'running')",
            tenant.tenant_id,
        ):
            await asyncio.sleep(0.05)
