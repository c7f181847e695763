"""Readings of one user: one at a time, in the order in which their first unread words were said."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from tests.support.api import append, execute, ok
from tests.support.chat_behaviours import by_question, decides, entry, extracts, lines_of
from tests.support.databases import migrated_database, served
from tests.support.model_service import app_of, asking
from tests.support.openai_server import OpenAIServer, openai_server, refusal
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant
from tests.support.working import make_due, over, working

REPLY = {"role": "assistant", "content": "I see."}


def everything(lines):
    return [entry(line["text"], line["id"]) for line in lines if line["role"] == "user"]


@pytest.fixture(scope="module")
def running_server():
    with openai_server() as server:
        yield server


@pytest.fixture
def chat(running_server: OpenAIServer):
    """Remembers every message of a user in its own words; nothing replaces anything."""
    running_server.reset()
    running_server.chat.otherwise = by_question(
        memories=extracts(everything), decisions=decides(lambda *_: {"event": "ADD"})
    )
    return running_server.chat


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    """A database without anybody else's jobs."""
    return await migrated_database(postgres, "reading_order")


@pytest.fixture(scope="module")
async def runtimes(dsn: str, running_server: OpenAIServer) -> AsyncIterator[list[Runtime]]:
    """Two processes' worth: each has connections of its own."""
    settings = asking(running_server, extraction_model="openai/reader", debounce_seconds=300)
    async with (
        open_runtime(settings, served(dsn)) as one,
        open_runtime(settings, served(dsn)) as two,
    ):
        yield [one, two]


@pytest.fixture(scope="module")
async def api(runtimes: list[Runtime]):
    async with app_of(runtimes[0]) as application:
        yield application


@pytest.fixture
async def tenant(runtimes: list[Runtime]) -> Caller:
    return await make_tenant(runtimes[0])


@pytest.fixture
async def client(api, tenant: Caller) -> AsyncIterator[AsyncClient]:
    async with client_of(api, tenant.key) as opened:
        yield opened


async def order(client: AsyncClient, session_id: str) -> str:
    """Have a session read now; the id of the job."""
    answer = await client.post(f"/sessions/{session_id}/extract", json={})
    return ok(answer, 202)["job_id"]


def on(day: int, text: str, **fields: Any) -> dict[str, Any]:
    said = {"client_time": f"2026-05-{day:02}T08:00:00+00:00"}
    return {"role": "user", "content": text, "metadata": said} | fields


def may(day: int) -> datetime:
    return datetime(2026, 5, day, 8, tzinfo=UTC)


async def job_of(dsn: str, tenant_id: str, kind: str = "extract") -> asyncpg.Record:
    [row] = await execute(
        dsn,
        "SELECT * FROM jobs WHERE tenant_id = $1 AND kind = $2 AND status = 'pending'",
        tenant_id,
        kind,
    )
    return row


class TestPlaces:
    """In the line of its user, which a job gets with the order."""

    async def test_of_an_append_it_is_the_time_of_its_first_message(self, client, dsn, tenant):
        await append(client, "talk", on(3, "I live in Munich."), on(4, "I have a dog."))
        row = await job_of(dsn, tenant.tenant_id)
        assert (row["lane"], row["lane_order"]) == ("read/ana", may(3))
        await append(client, "talk", on(9, "I have a cat."))

        assert (await job_of(dsn, tenant.tenant_id))["lane_order"] == may(3)

    async def test_without_a_time_of_the_client_it_is_the_time_of_the_append(
        self, client, dsn, tenant
    ):
        said = await append(client, "talk", "I live in Munich.")
        row = await job_of(dsn, tenant.tenant_id)

        assert (
            row["lane_order"].isoformat()
            == datetime.fromisoformat(said["messages"][0]["create_time"]).isoformat()
        )

    async def test_words_that_started_nothing_count_when_others_do(self, client, dsn, tenant):
        greeting = on(2, "Good morning!", role="assistant")
        assert not (await append(client, "talk", greeting))["extraction"]["scheduled"]
        await append(client, "talk", on(5, "I live in Munich."))

        assert (await job_of(dsn, tenant.tenant_id))["lane_order"] == may(2)

    @pytest.mark.parametrize("how", ["extract", "end", "resume"])
    async def test_of_a_request_it_is_the_time_of_the_first_unread_message(
        self, client, dsn, tenant, how
    ):
        said = await append(client, "talk", on(3, "I live in Munich."), on(4, "I have a dog."))
        ok(await client.post(f"/jobs/{said['extraction']['job_id']}/cancel"))
        if how == "resume":
            ok(await client.patch("/sessions/talk", json={"memory_enabled": False}))
            ok(await client.patch("/sessions/talk", json={"memory_enabled": True}))
        else:
            await client.post(f"/sessions/talk/{how}", json={})

        row = await job_of(dsn, tenant.tenant_id)
        assert (row["lane"], row["lane_order"]) == ("read/ana", may(3))

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            ({"messages": "I have a dog.", "valid_from": "2026-05-04T08:00:00Z"}, "read/ana"),
            ({"messages": "She has a dog.", "infer": False}, None),
        ],
    )
    async def test_a_request_that_is_read_later_stands_in_the_same_line(
        self, client, dsn, tenant, body, place
    ):
        ok(await client.post("/memories?async=true", json={"user_id": "ana"} | body), 202)

        row = await job_of(dsn, tenant.tenant_id, "infer")
        assert (row["lane"], row["lane_order"]) == (place, may(4) if place else None)

    async def test_what_a_rescue_has_read_moves_the_rest_back(
        self, client, chat, runtimes, dsn, tenant
    ):
        for day in range(1, 29):
            await append(client, "talk", on(day, f"I own book {day}. " + "word " * 60), REPLY)
        policy = {"window_policy": {"budget_tokens": 800, "automatic": False}}
        ok(await client.patch("/sessions/talk", json=policy))
        answer = ok(await client.post("/sessions/talk/compact", json={}))
        assert (await job_of(dsn, tenant.tenant_id))["lane_order"] == may(1)
        async with working(runtimes[0], dsn, profiles=False):
            await over(client, answer["rescue_job_id"])

        read = ok(await client.get("/sessions/talk"))["last_extracted_seq"]
        assert 0 < read < 56
        row = await job_of(dsn, tenant.tenant_id)
        assert row["lane_order"] == may(read // 2 + 1)


class TestTwoWorkers:
    async def both(self, stack: AsyncExitStack, runtimes, dsn: str) -> None:
        for runtime in runtimes:
            await stack.enter_async_context(working(runtime, dsn, profiles=False))

    async def test_ten_sessions_are_read_one_at_a_time_and_in_order(
        self, client, chat, runtimes, dsn
    ):
        asking: set[str] = set()
        read: list[str] = []
        most = 0

        async def reads(request):
            nonlocal most
            [text] = [line["text"] for line in lines_of(request, "message")]
            asking.add(text)
            most = max(most, len(asking))
            await asyncio.sleep(0.05)
            asking.remove(text)
            read.append(text)
            return await extracts(everything)(request)

        chat.otherwise = by_question(memories=reads, decisions=decides(lambda *_: {"event": "ADD"}))
        days = list(range(1, 11))
        random.Random(7).shuffle(days)
        jobs = []
        for day in days:
            await append(client, f"s{day}", on(day, f"The user owns book number {day:02}."))
            jobs.append(await order(client, f"s{day}"))
        async with AsyncExitStack() as stack:
            await self.both(stack, runtimes, dsn)
            for job_id in jobs:
                assert (await over(client, job_id))["status"] == "succeeded"

        assert (read, most) == (sorted(read), 1)
        assert len(read) == 10

    async def test_the_rest_of_a_long_session_waits_for_older_words_of_another(
        self, client, chat, runtimes, dsn
    ):
        read: list[tuple[str, int]] = []

        async def reads(request):
            texts = [line["text"] for line in lines_of(request, "message")]
            read.append((texts[0], len(texts)))
            return await extracts(lambda _: [])(request)

        chat.otherwise = by_question(memories=reads)
        turns = [on(1, f"Book {number}.") for number in range(100)]
        messages = [one for turn in turns for one in (turn, REPLY)]
        for start in range(0, 200, 50):
            await append(client, "long", *messages[start : start + 50])
        await append(client, "long", on(9, "The end of it."), REPLY)
        await append(client, "short", on(5, "Between them."), REPLY)
        jobs = [await order(client, session_id) for session_id in ("short", "long")]
        async with AsyncExitStack() as stack:
            await self.both(stack, runtimes, dsn)
            for job_id in jobs:
                assert (await over(client, job_id))["status"] == "succeeded"

        assert read == [("Book 0.", 200), ("Between them.", 2), ("The end of it.", 2)]

    async def test_a_model_that_is_down_for_one_session_bars_no_other(
        self, client, chat, runtimes, dsn, tenant
    ):
        down = True

        async def reads(request):
            [line] = lines_of(request, "message")
            if down and "Munich" in line["text"]:
                return await refusal(500)(request)
            return await extracts(everything)(request)

        chat.otherwise = by_question(memories=reads, decisions=decides(lambda *_: {"event": "ADD"}))
        await append(client, "old", on(1, "The user lives in Munich."))
        await append(client, "new", on(2, "The user has two dogs."))
        old, new = [await order(client, session_id) for session_id in ("old", "new")]
        async with AsyncExitStack() as stack:
            await self.both(stack, runtimes, dsn)
            assert (await over(client, new))["status"] == "succeeded"
            assert ok(await client.get(f"/jobs/{old}"))["status"] in {"pending", "running"}
            down = False
            await make_due(dsn, "job_id = $1", old)
            assert (await over(client, old))["status"] == "succeeded"

    async def test_users_are_read_beside_each_other(self, client, chat, runtimes, dsn):
        """The model answers each when it has been asked for both."""
        together = asyncio.Barrier(2)

        async def reads(request):
            async with asyncio.timeout(PATIENCE):
                await together.wait()
            return await extracts(everything)(request)

        chat.otherwise = by_question(memories=reads)
        await append(client, "hers", on(1, "The user lives in Munich."))
        await append(client, "his", on(1, "The user has two dogs."), user_id="ben")
        async with AsyncExitStack() as stack:
            await self.both(stack, runtimes, dsn)
            jobs = [await order(client, session_id) for session_id in ("hers", "his")]
            for job_id in jobs:
                assert (await over(client, job_id))["status"] == "succeeded"
