"""Workers and PostgreSQL killed at every step: afterwards the same memories, once."""

import asyncio
import os
import shutil
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
from httpx import AsyncClient

from app.platform.database.migrate import upgrade
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import open_runtime
from app.settings import Settings
from tests.support.api import append, every_page, execute, ok, save
from tests.support.application import started
from tests.support.chat_behaviours import (
    by_question,
    decides,
    entry,
    extracts,
    held,
    lines_of,
    schema_name_of,
)
from tests.support.databases import make_logins, migrated_database, served
from tests.support.openai_server import Endpoint, OpenAIServer, openai_server
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.worker_processes import expire_leases, worker_process
from tests.support.working import make_due

REPLY = {"role": "assistant", "content": "I see."}
SAID = "The user lives in Munich."
TEA = "The user drinks green tea in the morning."
COFFEE = "The user drinks black coffee in the morning."
ADDS = decides(lambda *_: {"event": "ADD"})


def everything(lines):
    """One fact per message of a user, in its own words."""
    return [entry(line["text"], line["id"]) for line in lines if line["role"] == "user"]


@pytest.fixture(scope="module")
def running_server():
    with openai_server() as server:
        yield server


@pytest.fixture
def chat(running_server: OpenAIServer):
    running_server.reset()
    running_server.chat.otherwise = by_question(memories=extracts(everything), decisions=ADDS)
    return running_server.chat


@pytest.fixture
async def crash_dsn(postgres: EmbeddedPostgres, request: pytest.FixtureRequest) -> str:
    """A database without anybody else's jobs, not even those of the test before."""
    return await migrated_database(postgres, f"crashes_{request.node.name}"[:60])


@asynccontextmanager
async def service(dsn: str) -> AsyncIterator[AsyncClient]:
    """The API without a worker, as an admin of a new tenant sees it."""
    settings = Settings(_env_file=None)
    async with (
        started(open_runtime(settings, served(dsn))) as application,
        open_runtime(settings, served(dsn)) as runtime,
    ):
        owner = await make_tenant(runtime)
        async with client_of(application, owner.key) as client:
            yield client


@pytest.fixture
async def client(crash_dsn: str) -> AsyncIterator[AsyncClient]:
    async with service(crash_dsn) as opened:
        yield opened


@pytest.fixture
def start(crash_dsn: str, running_server: OpenAIServer):
    """Start a worker that reads with the scripted model."""

    def starting(dsn: str = crash_dsn):
        return worker_process(
            dsn,
            extraction_model="openai/reader",
            openai_base_url=running_server.base_url,
            openai_api_key="key",
        )

    return starting


def readings(chat: Endpoint) -> int:
    """How often the model was asked what there is to remember."""
    return len(questions(chat, "memories"))


def questions(chat: Endpoint, name: str) -> list[str]:
    """What the model was asked under this name, whole."""
    return [
        str(request.body["messages"])
        for request in chat.requests
        if schema_name_of(request) == name
    ]


async def until(condition: Callable[[], Awaitable[object]], seconds: float = PATIENCE) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 (only the table says so)
            await asyncio.sleep(0.05)


async def ordered(client: AsyncClient, said: str = SAID) -> str:
    """A session with one statement, to be read now; the id of the job."""
    await append(client, "talk", said, REPLY)
    answer = await client.post("/sessions/talk/extract", json={})
    return ok(answer, 202)["job_id"]


async def status(client: AsyncClient, job_id: str) -> str:
    return ok(await client.get(f"/jobs/{job_id}"))["status"]


async def remembered_once(client: AsyncClient) -> None:
    """The statement is there once, everything is read, and nothing is owed."""
    rows = await every_page(client, "/memories", user_id="ana")
    assert [row["content"] for row in rows] == [SAID]
    history = await every_page(client, f"/memories/{rows[0]['memory_id']}/history")
    assert [line["event"] for line in history] == ["ADD"]
    session = ok(await client.get("/sessions/talk"))
    assert session["last_extracted_seq"] == session["last_sequence_no"] == 2
    jobs = ok(await client.get("/jobs", params={"kind": "extract"}))["items"]
    assert [job["status"] for job in jobs] == ["succeeded"]


@asynccontextmanager
async def holding(dsn: str, statement: str) -> AsyncIterator[None]:
    """Rows locked by somebody else while the block runs."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("SET ROLE kemem_owner")
    transaction = connection.transaction()
    await transaction.start()
    await connection.fetch(statement)
    try:
        yield
    finally:
        await transaction.rollback()
        await connection.close()


LOCK_RUNS = "LOCK TABLE extraction_runs IN EXCLUSIVE MODE"
"""Lets everything happen but the log of a run, which is written once a model has answered."""

LOCK_SESSIONS = "SELECT 1 FROM sessions FOR NO KEY UPDATE"
"""Lets everything happen but the move of the watermark, just before the commit."""


class TestKilledWorkers:
    @pytest.mark.slow
    async def test_after_the_claim(self, client, start, chat):
        release = threading.Event()
        chat.script(held(release, extracts(everything)))
        async with start() as worker:
            job_id = await ordered(client)
            await until(lambda: asyncio.sleep(0, readings(chat) == 1))
            assert await status(client, job_id) == "running"
            await worker.kill()
        release.set()
        async with start():
            await until(lambda: is_over(client, job_id))

        await remembered_once(client)

    @pytest.mark.slow
    async def test_after_the_model_has_answered(self, client, start, chat, crash_dsn):
        """Not even the log of the run is written yet."""
        async with start() as worker, holding(crash_dsn, LOCK_RUNS):
            job_id = await ordered(client)
            await until(lambda: asyncio.sleep(0, readings(chat) == 1))
            await asyncio.sleep(0.5)
            assert not await in_log(client, "extracted")
            await worker.kill()
        async with start():
            await until(lambda: is_over(client, job_id))

        await remembered_once(client)
        assert [run["status"] for run in await every_page(client, "/extractions")] == ["committed"]

    async def test_just_before_the_commit(self, client, start, chat, crash_dsn):
        async with start() as worker:
            await append(client, "talk", SAID, REPLY)
            async with holding(crash_dsn, LOCK_SESSIONS):
                await make_due(crash_dsn, "true")
                await until(lambda: in_log(client, "extracted"))
                await worker.kill()
        [job] = ok(await client.get("/jobs", params={"kind": "extract"}))["items"]
        assert job["status"] == "running"
        assert await every_page(client, "/memories", user_id="ana") == []
        await expire_leases(crash_dsn)
        async with start():
            await until(lambda: is_over(client, job["job_id"]))

        await remembered_once(client)
        runs = await every_page(client, "/extractions")
        assert sorted((run["status"], run["calls"]) for run in runs) == [
            ("committed", 0),
            ("extracted", 1),
        ]
        assert readings(chat) == 1
        assert await kept(crash_dsn) == []

    @pytest.mark.slow
    async def test_while_a_decision_is_awaited(self, client, start, chat, crash_dsn):
        release = threading.Event()
        await save(client, TEA, source="ai")
        chat.script(extracts(everything), held(release, ADDS))
        async with start() as worker:
            job_id = await ordered(client, COFFEE)
            await until(lambda: asyncio.sleep(0, len(questions(chat, "decisions")) == 1))
            await worker.kill()
        release.set()
        assert await kept(crash_dsn) == ["extract"]
        async with start():
            await until(lambda: is_over(client, job_id))

        assert readings(chat) == 1
        await coffee_and_tea(client)
        assert await kept(crash_dsn) == []

    async def test_with_a_decision_that_is_paid_for(self, client, start, chat, crash_dsn):
        """Old memories were reviewed in the same call, which a second attempt goes without."""
        await save(client, TEA, source="ai")
        await own_old_things(client, crash_dsn)
        async with start() as worker:
            await append(client, "talk", COFFEE, REPLY)
            async with holding(crash_dsn, LOCK_SESSIONS):
                await make_due(crash_dsn, "kind = 'extract'")
                await until(lambda: was_used_for(client, "reconcile"))
                await worker.kill()
        assert await kept(crash_dsn) == ["extract", "reconcile"]
        await a_day_passes(crash_dsn)
        [job] = ok(await client.get("/jobs", params={"kind": "extract"}))["items"]
        await expire_leases(crash_dsn)
        async with start():
            await until(lambda: is_over(client, job["job_id"]))

        assert ok(await client.get(f"/jobs/{job['job_id']}"))["attempts"] == 2
        asked = Counter([*questions(chat, "memories"), *questions(chat, "decisions")])
        assert sorted(asked.values()) == [1, 1]
        [decision] = [r for r in chat.requests if schema_name_of(r) == "decisions"]
        assert len(lines_of(decision, "due")) == 3
        await coffee_and_tea(client)
        usage = {row["operation"]: row["calls"] for row in ok(await client.get("/usage"))["items"]}
        assert usage["extract"] == usage["reconcile"] == 1
        assert await kept(crash_dsn) == []

    async def test_a_decision_is_not_used_once_a_memory_beside_it_says_something_else(
        self, client, start, chat, crash_dsn
    ):
        """The model was shown it, and may have named it."""
        await save(client, TEA, source="ai")
        far = await save(client, "用户在柏林租房。", source="ai")
        async with start() as worker:
            await append(client, "talk", COFFEE, REPLY)
            async with holding(crash_dsn, LOCK_SESSIONS):
                await make_due(crash_dsn, "kind = 'extract'")
                await until(lambda: was_used_for(client, "reconcile"))
                await worker.kill()
        body = {"content": "用户在慕尼黑租房。"}
        ok(await client.patch(f"/memories/{far['memory_id']}", json=body))
        [job] = ok(await client.get("/jobs", params={"kind": "extract"}))["items"]
        await expire_leases(crash_dsn)
        async with start():
            await until(lambda: is_over(client, job["job_id"]))

        assert readings(chat) == 1
        shown = [
            {line["text"] for line in lines_of(r, "memory")}
            for r in chat.requests
            if schema_name_of(r) == "decisions"
        ]
        assert shown == [{TEA, "用户在柏林租房。"}, {TEA, "用户在慕尼黑租房。"}]

    @pytest.mark.slow
    async def test_after_the_commit(self, client, start, chat, crash_dsn):
        async with start() as worker:
            job_id = await ordered(client)
            await until(lambda: is_over(client, job_id))
            await worker.kill()
        async with start():
            await asyncio.sleep(1)

        await remembered_once(client)
        assert readings(chat) == 1
        assert await kept(crash_dsn) == []

    @pytest.mark.slow
    async def test_a_lease_that_ran_out_under_a_living_worker(self, client, start, chat):
        """The late commit is refused: the frozen one wakes up when another has finished."""
        release = threading.Event()
        chat.script(held(release, extracts(everything)))
        async with start() as frozen:
            job_id = await ordered(client)
            await until(lambda: asyncio.sleep(0, readings(chat) == 1))
            frozen.freeze()
            async with start():
                await until(lambda: is_over(client, job_id))
            release.set()
            frozen.thaw()
            await asyncio.sleep(2)
            assert frozen.running

        await remembered_once(client)
        assert readings(chat) == 2


async def is_over(client: AsyncClient, job_id: str) -> bool:
    return await status(client, job_id) in {"succeeded", "dead", "cancelled"}


async def was_used_for(client: AsyncClient, operation: str) -> bool:
    usage = ok(await client.get("/usage", params={"operation": operation}))
    return bool(usage["items"])


async def kept(dsn: str) -> list[str]:
    """For what answers of models wait to be used, but for those of profiles."""
    rows = await execute(
        dsn,
        "SELECT operation FROM model_answers WHERE operation <> 'profile' ORDER BY create_time",
    )
    return [row["operation"] for row in rows]


async def own_old_things(client: AsyncClient, dsn: str) -> None:
    """Three memories that nobody has spoken of for long."""
    for thing in ("horse", "violin", "kayak"):
        await save(client, f"The user owns a {thing}.", source="ai")
    await execute(
        dsn,
        "UPDATE memories SET use_count = use_count + 1, update_time = now() - interval '100 days', "
        "create_time = now() - interval '100 days' WHERE content LIKE '%owns a%'",
    )


async def a_day_passes(dsn: str) -> None:
    """Since the old things were spoken of, and not for the answers."""
    await execute(
        dsn,
        "UPDATE memories SET use_count = use_count + 1, update_time = update_time "
        "- interval '1 day' WHERE content LIKE '%owns a%'",
    )


async def coffee_and_tea(client: AsyncClient) -> None:
    """Both drinks are remembered, the new one once."""
    rows = await every_page(client, "/memories", user_id="ana")
    assert sorted(row["content"] for row in rows if "drinks" in row["content"]) == [COFFEE, TEA]


async def in_log(client: AsyncClient, run_status: str) -> bool:
    return bool(ok(await client.get("/extractions", params={"status": run_status}))["items"])


@pytest.fixture
def own_folder():
    """For a PostgreSQL of the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="kemem-tests-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
async def test_postgres_killed_in_the_middle_of_a_run_loses_nothing(start, chat, own_folder):
    release = threading.Event()
    chat.script(held(release, extracts(everything)))
    async with EmbeddedPostgres(own_folder / "data") as server:
        await make_logins(server)
        await upgrade(server.dsn)
        async with service(server.dsn) as client, start(server.dsn):
            job_id = await ordered(client)
            await until(lambda: asyncio.sleep(0, readings(chat) == 1))
            os.kill(server.pid, signal.SIGKILL)
            release.set()
            await until(lambda: answers(client))
            await until(lambda: is_over(client, job_id))

            await remembered_once(client)


async def answers(client: AsyncClient) -> bool:
    return (await client.get("/sessions/talk")).status_code == 200
