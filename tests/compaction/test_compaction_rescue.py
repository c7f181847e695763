"""What leaves the window is read for memories at once, exactly, and once."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from tests.support.api import append, every_page, execute, ok
from tests.support.chat_behaviours import (
    by_question,
    decides,
    entry,
    extracts,
    held,
    lines_of,
)
from tests.support.conversations import compact, converse, policy, turns, window
from tests.support.databases import migrated_database, served
from tests.support.model_service import app_of, asking
from tests.support.openai_server import OpenAIServer
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant
from tests.support.working import extracted, over, until, waiting, working


def one_each(lines):
    """One fact per message of a user, in its own words."""
    return [entry(line["text"], line["id"]) for line in lines if line["role"] == "user"]


READING = by_question(
    memories=extracts(one_each), decisions=decides(lambda _, _near: {"event": "ADD"})
)


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    """A database of this file alone: other tests' jobs would use up the script."""
    return await migrated_database(postgres, "rescues")


@pytest.fixture(scope="module")
async def model_runtime(dsn: str, running_server: OpenAIServer) -> AsyncIterator[Runtime]:
    """Memories by a model, summaries without."""
    settings = asking(
        running_server,
        extraction_model="openai/reader",
        max_extractions=1,
        # Else what another test left unread comes in between.
        debounce_seconds=300,
    )
    async with open_runtime(settings, served(dsn)) as runtime:
        yield runtime


@pytest.fixture(scope="module")
async def model_app(model_runtime: Runtime):
    async with app_of(model_runtime) as application:
        yield application


@pytest.fixture
async def owner(model_runtime: Runtime) -> Caller:
    return await make_tenant(model_runtime)


@pytest.fixture
async def client(model_app, owner: Caller, chat) -> AsyncIterator[AsyncClient]:
    chat.otherwise = READING
    async with client_of(model_app, owner.key) as opened:
        yield opened


@pytest.fixture
async def worker(model_runtime: Runtime, dsn: str):
    async with working(model_runtime, dsn, profiles=False) as running:
        yield running


async def full(client: AsyncClient, count: int = 40, **keys: Any) -> None:
    await policy(client, "talk", **({"budget_tokens": 400, "automatic": False} | keys))
    await converse(client, "talk", count)


async def session(client: AsyncClient) -> dict[str, Any]:
    return ok(await client.get("/sessions/talk"))


async def runs(client: AsyncClient) -> list[tuple[int, int, str]]:
    """First and last message of each run and why it was, in their order."""
    rows = await every_page(client, "/extractions", session_id="talk")
    return sorted(
        (row["first_sequence_no"], row["last_sequence_no"], row["trigger"]) for row in rows
    )


async def shown_to_the_model(chat) -> list[str]:
    """What was new in all requests so far, in their order."""
    lines = [line for request in chat.requests for line in lines_of(request, "message")]
    return [line["text"] for line in lines]


class TestReading:
    async def test_exactly_the_evicted_messages_are_extracted(self, client, chat, worker):
        """Without waiting for the session to fall silent."""
        await full(client)

        answer = await compact(client, "talk")
        job = await over(client, answer["rescue_job_id"])

        to_seq = answer["evicted"]["to_seq"]
        assert (job["status"], job["kind"]) == ("succeeded", "rescue")
        assert (await session(client))["last_extracted_seq"] == to_seq
        assert await runs(client) == [(1, to_seq, "rescue")]
        said = [one["content"] for one in turns(40)]
        assert await shown_to_the_model(chat) == said[:to_seq]

    async def test_messages_on_a_left_branch_are_extracted_too(self, client, chat, worker):
        """Decision 13: it was said, and what is said on the new branch is said later."""
        await full(client, 4)
        kept = ok(await client.post("/sessions/talk/checkpoints", json={}), 201)
        await append(client, "talk", *turns(6, first=5))
        ok(await client.post(f"/sessions/talk/checkpoints/{kept['checkpoint_id']}/restore"))
        await append(client, "talk", *turns(6, first=11))

        await extracted(client, "talk")

        assert (await window(client, "talk"))["set_aside"] == 6
        assert await shown_to_the_model(chat) == [one["content"] for one in turns(16)]
        assert (await session(client))["last_extracted_seq"] == 16

    async def test_extracted_messages_are_not_extracted_again(self, client, chat, worker):
        await full(client)
        await extracted(client, "talk")
        asked = len(chat.requests)

        answer = await compact(client, "talk")

        assert answer["rescue_job_id"] is None
        assert len(chat.requests) == asked

    async def test_the_rest_is_read_later_and_each_message_once(self, client, chat, worker):
        await full(client)
        await over(client, (await compact(client, "talk"))["rescue_job_id"])

        await extracted(client, "talk")

        assert await shown_to_the_model(chat) == [one["content"] for one in turns(40)]
        spans = [(first, last) for first, last, _ in await runs(client)]
        assert spans[0][0] == 1
        assert spans[-1][1] == 40
        assert spans[1][0] == spans[0][1] + 1

    async def test_large_eviction_is_extracted_in_several_runs(self, client, chat, worker):
        await full(client, 460, budget_tokens=200)
        chat.otherwise = extracts(lambda _: [])

        answer = await compact(client, "talk")
        to_seq = answer["evicted"]["to_seq"]
        await over(client, answer["rescue_job_id"])

        assert to_seq > 200
        assert (await session(client))["last_extracted_seq"] == to_seq
        assert await shown_to_the_model(chat) == [one["content"] for one in turns(460)][:to_seq]
        assert {trigger for _, _, trigger in await runs(client)} == {"rescue"}

    async def test_a_second_compaction_joins_the_first_rescue(self, client, chat, worker):
        """While it reads: what it left is read afterwards, and nothing of it is lost."""
        release = threading.Event()
        chat.script(held(release, extracts(one_each)))
        await full(client)
        first = await compact(client, "talk")
        await until(lambda: chat.requests)
        await append(client, "talk", *turns(20, first=41))

        second = await compact(client, "talk", force=True)
        release.set()
        await over(client, second["rescue_job_id"])

        assert second["rescue_job_id"] == first["rescue_job_id"]
        to_seq = second["evicted"]["to_seq"]
        assert (await session(client))["last_extracted_seq"] == to_seq
        said = [one["content"] for one in turns(60)]
        assert await shown_to_the_model(chat) == said[:to_seq]

    async def test_limit_of_automatic_runs_does_not_delay_the_rescue(self, client, chat, worker):
        """What leaves the window cannot wait for tomorrow."""
        await full(client, 4)
        await extracted(client, "talk")
        await converse(client, "talk", 40)
        refused = await client.post("/sessions/talk/extract", json={})
        assert refused.status_code == 429

        answer = await compact(client, "talk")

        assert (await over(client, answer["rescue_job_id"]))["status"] == "succeeded"
        assert (await session(client))["last_extracted_seq"] == answer["evicted"]["to_seq"]

    async def test_rescue_job_counts_for_no_limit_itself(self, client, chat, worker):
        await full(client)
        await over(client, (await compact(client, "talk"))["rescue_job_id"])

        assert (await extracted(client, "talk"))["done"] is True


class TestWithout:
    async def test_a_session_that_remembers_nothing_is_not_rescued(self, client, chat):
        """As for the sub-agents of others."""
        await full(client)
        ok(await client.patch("/sessions/talk", json={"memory_enabled": False}))

        answer = await compact(client, "talk")

        assert answer["compacted"] is True
        assert answer["rescue_job_id"] is None

    async def test_rescue_is_not_ordered_for_an_agent_without_memory(self, client, chat):
        await full(client)
        agent = (await session(client))["agent_id"]
        ok(await client.patch(f"/agents/{agent}", json={"memory_enabled": False}))

        assert (await compact(client, "talk"))["rescue_job_id"] is None

    async def test_one_that_is_paused_meanwhile_stays_owed(self, client, chat, model_runtime, dsn):
        await full(client)
        answer = await compact(client, "talk")
        ok(await client.patch("/sessions/talk", json={"memory_enabled": False}))

        async with working(model_runtime, dsn, profiles=False):
            job = await waiting(client, answer["rescue_job_id"])

        assert job["deferred_reason"] == "memory_paused"
        assert (await session(client))["last_extracted_seq"] == 0
        assert chat.requests == []

    async def test_a_dry_run_rescues_nothing(self, client, chat):
        await full(client)

        await compact(client, "talk", dry_run=True)

        jobs = ok(await client.get("/jobs", params={"kind": "rescue"}))["items"]
        assert jobs == []


class TestAtOnce:
    async def test_beside_an_ordinary_reading_each_message_is_read_once(self, client, chat, worker):
        release = threading.Event()
        chat.script(held(release, extracts(one_each)))
        await full(client)
        reading = ok(await client.post("/sessions/talk/extract", json={}), 202)
        await until(lambda: chat.requests)

        answer = await compact(client, "talk")
        job = await waiting(client, answer["rescue_job_id"])
        assert job["deferred_reason"] == "lane_busy"
        release.set()
        await over(client, reading["job_id"])
        await over(client, answer["rescue_job_id"])

        assert await shown_to_the_model(chat) == [one["content"] for one in turns(40)]
        assert [(first, last) for first, last, _ in await runs(client)] == [(1, 40)]

    async def test_an_ordinary_reading_waits_for_a_rescue(self, client, chat, worker):
        release = threading.Event()
        chat.script(held(release, extracts(one_each)))
        await full(client)
        answer = await compact(client, "talk")
        await until(lambda: chat.requests)

        reading = ok(await client.post("/sessions/talk/extract", json={}), 202)
        job = await waiting(client, reading["job_id"])
        assert job["deferred_reason"] == "lane_busy"
        release.set()
        await over(client, answer["rescue_job_id"])
        await over(client, reading["job_id"])

        assert await shown_to_the_model(chat) == [one["content"] for one in turns(40)]
        assert (await session(client))["last_extracted_seq"] == 40

    async def test_by_itself_from_the_append_to_the_memory(self, client, chat, worker):
        """Window full, compacted, rescued; nobody asked for any of it."""
        await policy(client, "talk", budget_tokens=400)
        job_id = (await converse(client, "talk", 40))["pressure"]["compaction_job_id"]

        done = await over(client, job_id)
        rescued = await over(client, done["result"]["rescue_job_id"])

        shown = await window(client, "talk")
        assert shown["in_context_from"] == done["result"]["to_seq"]
        assert shown["pressure"]["level"] != "flush"
        assert rescued["result"]["memory_ids"]
        assert (await session(client))["last_extracted_seq"] == shown["in_context_from"]

    async def test_two_appends_and_a_compaction_at_once(self, client, chat, worker, dsn, owner):
        await full(client)

        *_, answer = await asyncio.gather(
            append(client, "talk", *turns(9, first=41)),
            append(client, "talk", *turns(9, first=51)),
            compact(client, "talk", force=True),
        )
        await over(client, answer["rescue_job_id"])

        stored = await every_page(client, "/sessions/talk/messages")
        assert [one["sequence_no"] for one in stored] == list(range(1, 59))
        shown = await window(client, "talk")
        assert shown["in_context_from"] == answer["evicted"]["to_seq"]
        assert shown["messages"] == 58 - shown["in_context_from"]
        [row] = await execute(
            dsn,
            "SELECT sum(token_count) AS tokens FROM messages WHERE tenant_id = $1 "
            "AND sequence_no > $2",
            owner.tenant_id,
            shown["in_context_from"],
        )
        assert shown["tokens"] == row["tokens"]
