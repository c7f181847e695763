"""Workers killed in the middle of a compaction: one summary, one rescue, nothing lost."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import open_runtime
from app.settings import Settings
from tests.support.api import every_page, execute, ok
from tests.support.application import started
from tests.support.chat_behaviours import (
    by_question,
    decides,
    entry,
    extracts,
    held,
    schema_name_of,
    summarises,
)
from tests.support.conversations import converse, policy, summaries, turns, window
from tests.support.databases import migrated_database, served
from tests.support.locks import holding, until_somebody_waits
from tests.support.openai_server import OpenAIServer
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.worker_processes import expire_leases, worker_process

SUMMARY = "I helped the user with the archive."
LOCK_SESSIONS = "SELECT 1 FROM sessions FOR NO KEY UPDATE"
"""Lets everything happen but the move of the pointer, just before the commit."""


def one_each(lines):
    return [entry(line["text"], line["id"]) for line in lines if line["role"] == "user"]


READING = by_question(
    memories=extracts(one_each), decisions=decides(lambda _, _near: {"event": "ADD"})
)
ANSWERS = by_question(
    summary=summarises(SUMMARY),
    memories=READING,
    decisions=READING,
)


@pytest.fixture
def answering(chat):
    chat.otherwise = ANSWERS
    return chat


@pytest.fixture(scope="module")
async def crash_dsn(postgres: EmbeddedPostgres) -> str:
    """A database without anybody else's jobs."""
    return await migrated_database(postgres, "compaction_crashes")


@pytest.fixture
async def client(crash_dsn: str) -> AsyncIterator[AsyncClient]:
    """The API without a worker, as an admin of a new tenant sees it."""
    # Else the rest of the session is read while a slow machine starts its workers.
    settings = Settings(_env_file=None, debounce_seconds=300)
    async with (
        started(open_runtime(settings, served(crash_dsn))) as application,
        open_runtime(settings, served(crash_dsn)) as runtime,
    ):
        owner = await make_tenant(runtime)
        async with client_of(application, owner.key) as opened:
            yield opened


@pytest.fixture
def start(crash_dsn: str, running_server: OpenAIServer):
    """Start a worker that writes and reads with the scripted model."""

    def starting():
        return worker_process(
            crash_dsn,
            extraction_model="openai/reader",
            summary_model="openai/writer",
            openai_base_url=running_server.base_url,
            openai_api_key="key",
        )

    return starting


async def ordered(client: AsyncClient) -> str:
    """A session whose window is full; the id of the job that will compact it."""
    await policy(client, "talk", budget_tokens=400)
    return (await converse(client, "talk", 40))["pressure"]["compaction_job_id"]


async def done(client: AsyncClient, job_id: str) -> dict:
    async with asyncio.timeout(PATIENCE):
        while True:
            job = ok(await client.get(f"/jobs/{job_id}"))
            if job["status"] in {"succeeded", "dead", "cancelled"}:
                return job
            await asyncio.sleep(0.05)


async def asked(chat, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(chat.requests) < count:  # noqa: ASYNC110 (another thread brings it about)
            await asyncio.sleep(0.05)


def summaries_asked(chat) -> int:
    return sum(schema_name_of(request) == "summary" for request in chat.requests)


async def compacted_once(client: AsyncClient, job_id: str) -> None:
    """One summary stands for what left, all of which was read, and each memory is there once."""
    job = await done(client, job_id)
    assert job["status"] == "succeeded", job
    await done(client, job["result"]["rescue_job_id"])
    [row] = await summaries(client, "talk")
    assert (row["content"], row["from_seq"]) == (SUMMARY, 1)
    shown = await window(client, "talk")
    assert shown["summary_ids"] == [row["summary_id"]]
    assert shown["in_context_from"] == row["to_seq"]
    stored = await every_page(client, "/sessions/talk/messages")
    assert [one["content"] for one in stored] == [one["content"] for one in turns(40)]
    remembered = [one["content"] for one in await every_page(client, "/memories", user_id="ana")]
    said = [one["content"] for one in turns(row["to_seq"]) if one["role"] == "user"]
    assert len(remembered) == len(set(remembered))
    assert set(remembered) <= set(said)
    assert (await every_page(client, "/extractions", session_id="talk"))[0]["trigger"] == "rescue"
    session = ok(await client.get("/sessions/talk"))
    assert session["last_extracted_seq"] == row["to_seq"]


class TestKilledWorkers:
    @pytest.mark.slow
    async def test_while_the_model_writes(self, client, start, answering):
        release = threading.Event()
        answering.script(held(release, summarises("Half a ")))
        job_id = await ordered(client)
        async with start() as worker:
            await asked(answering, 1)
            await worker.kill()
        release.set()
        assert (await window(client, "talk"))["in_context_from"] == 0

        async with start():
            await compacted_once(client, job_id)

    async def test_between_the_answer_and_the_commit(self, client, start, answering, crash_dsn):
        job_id = await ordered(client)
        async with holding(crash_dsn, LOCK_SESSIONS) as holder, start() as worker:
            await asked(answering, 1)
            await until_somebody_waits(crash_dsn, holder)
            await worker.kill()
        assert (await window(client, "talk"))["in_context_from"] == 0
        assert await summaries(client, "talk") == []

        await expire_leases(crash_dsn)
        async with start():
            await compacted_once(client, job_id)
        assert summaries_asked(answering) == 1
        kept = "SELECT FROM model_answers WHERE operation = 'summarise'"
        assert await execute(crash_dsn, kept) == []

    @pytest.mark.slow
    async def test_kill_during_the_rescue_loses_nothing(self, client, start, answering):
        release = threading.Event()
        answering.script(summarises(SUMMARY), held(release, extracts(one_each)))
        job_id = await ordered(client)
        async with start() as worker:
            await asked(answering, 2)
            await worker.kill()
        release.set()

        async with start():
            await compacted_once(client, job_id)
        assert len(await summaries(client, "talk")) == 1
