"""Compaction inside a turn: steps leave, the request stays, and nothing is lost on the way."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import append, every_page, ok
from tests.support.conversations import compact, policy, summaries, window
from tests.support.databases import migrated_database, served
from tests.support.locks import holding, until_somebody_waits
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_tenant
from tests.support.worker_processes import expire_leases, worker_process
from tests.support.working import over, working

REQUEST = "Please compare the prices of all the hotels in Lisbon, and write them down by district."
LOCK_SESSIONS = "SELECT 1 FROM sessions FOR NO KEY UPDATE"
"""Lets everything happen but the move of the pointer, just before the commit."""

SHAPES = [(60, 200), (4, 5000), (1000, 50)]


def step(number: int, tokens: int) -> list[dict[str, Any]]:
    """A call and its result, of about so many tokens together."""
    call = {
        "id": f"call-{number}",
        "function": {"name": "read_page", "arguments": json.dumps({"page": number})},
    }
    result = f"Page {number}: " + "hotel price district " * ((tokens - 30) // 4)
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": result, "tool_call_id": call["id"]},
    ]


async def compacted(client: AsyncClient, told: dict[str, Any]) -> bool:
    """Do what an append has ordered, as the job does; whether it ordered anything."""
    ordered = told["pressure"]["compaction_job_id"] is not None
    more = ordered
    while more:
        answer = await compact(client, "talk")
        more = answer["compacted"] and answer["more"]
    return ordered


async def run(client: AsyncClient, steps: int, tokens: int, *, batch: int = 1) -> int:
    """One turn: a request and so many steps, appended `batch` at a time; how often compacted."""
    await append(client, "talk", REQUEST)
    ordered = 0
    for first in range(0, steps, batch):
        messages = [
            message
            for number in range(first, min(first + batch, steps))
            for message in step(number, tokens)
        ]
        ordered += await compacted(client, await append(client, "talk", *messages))
    return ordered


async def check(client: AsyncClient, steps: int) -> None:
    """Each message is in a summary or in the window, once; the request is shown, and in front."""
    shown = await window(client, "talk")
    rows = {row["summary_id"]: row for row in await every_page(client, "/sessions/talk/summaries")}
    spans = [(rows[one]["from_seq"], rows[one]["to_seq"]) for one in shown["summary_ids"]]
    assert spans[0][0] == 1
    assert all(later[0] == last[1] + 1 for last, later in pairwise(spans))
    assert spans[-1][1] == shown["in_context_from"]
    assert shown["in_context_from"] + shown["messages"] == 1 + 2 * steps
    assert shown["current_request"] == 1
    stored = await every_page(client, "/sessions/talk/messages")
    assert len(stored) == 1 + 2 * steps
    # A call is not parted from its result.
    assert shown["in_context_from"] % 2 == 1
    trimmed = ok(await client.post("/sessions/talk/window/trim", json={"max_tokens": 50_000}))
    assert trimmed["messages"][0]["content"] == REQUEST
    assert [one["sequence_no"] for one in trimmed["messages"]] == [
        1, *range(shown["in_context_from"] + 1, 2 + 2 * steps),
    ]  # fmt: skip
    # What is counted is what is shown.
    assert shown["tokens"] == trimmed["tokens"]


@pytest.fixture(params=["step by step", "in batches"])
def batch(request: pytest.FixtureRequest) -> int:
    return 1 if request.param == "step by step" else 7


class TestLongTurns:
    @pytest.mark.parametrize(("steps", "tokens"), SHAPES[:2])
    async def test_steps_leave_and_the_request_stays(
        self, client: AsyncClient, steps: int, tokens: int, batch: int
    ) -> None:
        await policy(client, "talk", budget_tokens=4000)

        ordered = await run(client, steps, tokens, batch=batch)

        await check(client, steps)
        # Not with every step.
        assert 1 <= ordered <= steps // batch // 3 + 1 or steps == 4
        pressure = (await window(client, "talk"))["pressure"]
        assert (pressure["level"] != "flush") == (tokens < 4000)

    async def test_a_thousand_steps_before_the_first_compaction(self, client: AsyncClient) -> None:
        """One summary covers 400 messages; the rest follows."""
        await policy(client, "talk", budget_tokens=4000, automatic=False)
        await run(client, 1000, 50, batch=50)

        answers = [await compact(client, "talk")]
        while answers[-1]["more"]:
            answers.append(await compact(client, "talk"))

        assert all(one["compacted"] for one in answers)
        assert len(answers) == 5
        await check(client, 1000)
        assert (await window(client, "talk"))["pressure"]["level"] != "flush"
        levels = [one["level"] for one in await summaries(client, "talk") if one["in_context"]]
        assert all(levels.count(level) <= 3 for level in levels)

    @pytest.mark.slow
    async def test_a_thousand_steps_one_by_one(self, client: AsyncClient) -> None:
        await policy(client, "talk", budget_tokens=4000)

        ordered = await run(client, 1000, 50)

        await check(client, 1000)
        assert ordered <= 50
        assert (await window(client, "talk"))["pressure"]["level"] != "flush"

    async def test_in_the_next_turn_it_is_shown_as_long_as_its_steps_are(
        self, client: AsyncClient
    ) -> None:
        """Without a request before them they were left out; later the summary stands for it."""
        await policy(client, "talk", budget_tokens=4000)
        await run(client, 60, 200)
        before = await window(client, "talk")

        told = await append(client, "talk", {"role": "assistant", "content": "Done."}, "Thank you.")

        after = await window(client, "talk")
        assert after["current_request"] == 123
        assert after["in_context_from"] == before["in_context_from"]
        trimmed = ok(await client.post("/sessions/talk/window/trim", json={"max_tokens": 50_000}))
        assert [one["sequence_no"] for one in trimmed["messages"]] == [
            1, *range(after["in_context_from"] + 1, 124),
        ]  # fmt: skip
        assert trimmed["left_out"] == 0
        assert after["tokens"] == trimmed["tokens"]
        assert told["pressure"]["tokens"] == after["tokens"] + after["summary_tokens"]

        assert (await compact(client, "talk", force=True, keep_messages=1))["compacted"]

        shown = await window(client, "talk")
        assert (shown["in_context_from"], shown["messages"]) == (122, 1)
        trimmed = ok(await client.post("/sessions/talk/window/trim", json={"max_tokens": 50_000}))
        assert [one["content"] for one in trimmed["messages"]] == ["Thank you."]
        assert shown["tokens"] == trimmed["tokens"]

    async def test_a_context_shows_summary_request_and_newest_steps(
        self, client: AsyncClient
    ) -> None:
        await policy(client, "talk", budget_tokens=4000)
        await run(client, 60, 200)

        body = {"render": "openai", "include": {"excerpts": False, "memories": False}}
        answer = ok(await client.post("/sessions/talk/context", json=body))

        said = [one for one in answer["messages"] if one["role"] != "system"]
        assert (said[0]["role"], said[0]["content"]) == ("user", REQUEST)
        assert said[-1]["content"].startswith("Page 59:")
        calls = [call["id"] for one in said for call in one.get("tool_calls", ())]
        assert calls == [one["tool_call_id"] for one in said if one["role"] == "tool"]
        assert answer["summary"]
        assert answer["window"]["fits"] is True
        assert answer["window"]["left_out"] == 0
        assert answer["starts_with_user"] is True

    async def test_a_call_that_waits_inside_the_turn_stays(self, client: AsyncClient) -> None:
        await policy(client, "talk", budget_tokens=1000, automatic=False)
        await append(client, "talk", REQUEST)
        for number in range(9):
            await append(client, "talk", *step(number, 200))
        await append(client, "talk", step(9, 200)[0])

        answer = await compact(client, "talk")

        assert answer["compacted"]
        trimmed = ok(await client.post("/sessions/talk/window/trim", json={"max_tokens": 50_000}))
        assert trimmed["waiting"] == ["call-9"]


class TestSummaries:
    async def test_over_many_turns_they_stay_few_and_short(self, client: AsyncClient) -> None:
        """A service without a model, in turns of one step each."""
        await policy(client, "talk", budget_tokens=600, keep_messages=4)

        for number in range(100):
            await append(client, "talk", f"What does page {number} say about the hotel?")
            await compacted(client, await append(client, "talk", *step(number, 60)))

        shown = await window(client, "talk")
        rows = [one for one in await summaries(client, "talk") if one["in_context"]]
        levels = [one["level"] for one in rows]
        assert all(levels.count(level) <= 3 for level in levels)
        assert 0 < shown["summary_tokens"] <= 600 // 4
        assert rows[-1]["from_seq"] == 1
        assert len(await every_page(client, "/sessions/talk/summaries")) > 15

    async def test_without_a_model_one_says_which_tools_were_called_where(
        self, client: AsyncClient
    ) -> None:
        await policy(client, "talk", budget_tokens=1000, automatic=False)
        await append(client, "talk", REQUEST)
        for number in range(10):
            await append(client, "talk", *step(number, 200))

        answer = await compact(client, "talk")

        last = answer["evicted"]["to_seq"] - 1
        first, asked, *_ = answer["summary"]["content"].splitlines()
        assert first.startswith(f"Tool calls (messages 2–{last}): read_page ×{last // 2}; newest: ")
        assert f"read_page(page={last // 2 - 1})" in first
        assert asked == f"User: {REQUEST}"


class TestReturning:
    """What moves or reads the pointer, while it is inside a turn."""

    async def test_a_restored_checkpoint_shows_the_request_again(self, client: AsyncClient) -> None:
        await policy(client, "talk", budget_tokens=4000)
        await run(client, 60, 200)
        before = await window(client, "talk")
        made = ok(await client.post("/sessions/talk/checkpoints", json={}), 201)
        await append(client, "talk", {"role": "assistant", "content": "Done."}, "And in Porto?")
        await compacted(client, await append(client, "talk", *step(90, 5000), *step(91, 5000)))

        path = f"/sessions/talk/checkpoints/{made['checkpoint_id']}/restore"
        ok(await client.post(path))

        assert await window(client, "talk") == before | {"set_aside": 6}

    async def test_a_fork_inside_the_turn_shows_the_request_too(self, client: AsyncClient) -> None:
        await policy(client, "talk", budget_tokens=4000)
        await run(client, 60, 200)
        before = await window(client, "talk")

        ok(await client.post("/sessions/talk/fork", json={"session_id": "other"}), 201)

        forked = await window(client, "other")
        for name in ("in_context_from", "messages", "tokens", "current_request", "summary_tokens"):
            assert forked[name] == before[name], name
        body = {"max_tokens": 50_000}
        trimmed = ok(await client.post("/sessions/other/window/trim", json=body))
        assert trimmed["messages"][0]["content"] == REQUEST
        assert trimmed["tokens"] == forked["tokens"]

    async def test_without_its_request_the_one_before_it_is_shown(
        self, client: AsyncClient
    ) -> None:
        """A deleted request is not shown, and a conversation begins with the user."""
        await policy(client, "talk", budget_tokens=4000)
        await append(client, "talk", "Hello!", {"role": "assistant", "content": "Hello."})
        await run(client, 60, 200)
        stored = await every_page(client, "/sessions/talk/messages")
        assert (await window(client, "talk"))["current_request"] == 3

        body = {"message_ids": [stored[2]["message_id"]]}
        ok(await client.post("/sessions/talk/messages/delete", json=body))

        shown = await window(client, "talk")
        assert shown["current_request"] == 1
        trimmed = ok(await client.post("/sessions/talk/window/trim", json={"max_tokens": 50_000}))
        assert trimmed["messages"][0]["content"] == "Hello!"
        assert shown["tokens"] == trimmed["tokens"]

    async def test_an_emptied_window_begins_at_the_newest_step_that_is_left(
        self, client: AsyncClient
    ) -> None:
        """As where an agent is resumed from before what a killed attempt has done."""
        await policy(client, "talk", budget_tokens=4000)
        await run(client, 60, 200)
        start = (await window(client, "talk"))["in_context_from"]
        stored = await every_page(client, "/sessions/talk/messages")

        ids = [one["message_id"] for one in stored if one["sequence_no"] > start]
        ok(await client.post("/sessions/talk/messages/delete", json={"message_ids": ids}))

        shown = await window(client, "talk")
        assert shown["in_context_from"] < start
        assert (shown["messages"], shown["current_request"]) == (2, 1)
        body = {"render": "openai", "include": {"excerpts": False, "memories": False}}
        answer = ok(await client.post("/sessions/talk/context", json=body))
        said = [message for message in answer["messages"] if message["role"] != "system"]
        assert [message["role"] for message in said] == ["user", "assistant", "tool"]
        assert said[0]["content"] == REQUEST
        assert said[2]["content"] == stored[start - 1]["content"]
        assert answer["window"]["fits"] is True

    async def test_a_session_without_any_message_left_has_an_empty_window(
        self, client: AsyncClient
    ) -> None:
        await policy(client, "talk", budget_tokens=4000)
        await run(client, 60, 200)

        ok(await client.delete("/sessions/talk/messages", params={"confirm": True}))

        shown = await window(client, "talk")
        assert (shown["messages"], shown["tokens"], shown["current_request"]) == (0, 0, None)

    async def test_what_left_is_read_for_memories(
        self, client: AsyncClient, runtime: Runtime, dsn: str
    ) -> None:
        await policy(client, "talk", budget_tokens=1000, automatic=False)
        await append(client, "talk", "I live in Lisbon. " + REQUEST)
        for number in range(10):
            await append(client, "talk", *step(number, 200))

        answer = await compact(client, "talk")

        async with working(runtime, dsn):
            job = await over(client, answer["rescue_job_id"])
        assert job["status"] == "succeeded", job
        session = ok(await client.get("/sessions/talk"))
        assert session["last_extracted_seq"] == answer["evicted"]["to_seq"] < 21
        found = [one["content"] for one in await every_page(client, "/memories", user_id="ana")]
        assert any("Lisbon" in one for one in found)


class TestRaces:
    async def test_of_two_compactions_at_once_one_counts(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await policy(client, "talk", budget_tokens=1000, automatic=False)
        await append(client, "talk", REQUEST)
        for number in range(20):
            await append(client, "talk", *step(number, 200))

        lock = f"SELECT 1 FROM sessions WHERE tenant_id = '{acme.tenant_id}' FOR UPDATE"
        async with holding(dsn, lock) as holder:
            both = [asyncio.create_task(compact(client, "talk")) for _ in range(2)]
            await until_somebody_waits(dsn, holder)
        answers = await asyncio.gather(*both)

        assert sorted(one["compacted"] for one in answers) == [False, True]
        [refused] = [one for one in answers if not one["compacted"]]
        assert refused["why_not"] in {"already_compacted", "below_trigger"}
        await check(client, 20)
        assert len(await summaries(client, "talk")) == 1

    async def test_a_request_that_comes_meanwhile_is_the_current_one(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await policy(client, "talk", budget_tokens=1000, automatic=False)
        await append(client, "talk", REQUEST)
        for number in range(20):
            await append(client, "talk", *step(number, 200))
        lock = f"SELECT 1 FROM sessions WHERE tenant_id = '{acme.tenant_id}' FOR UPDATE"

        async with holding(dsn, lock) as holder:
            saying = asyncio.create_task(append(client, "talk", "Stop, thank you."))
            await until_somebody_waits(dsn, holder)
            compacting = asyncio.create_task(compact(client, "talk"))
        await asyncio.gather(saying, compacting)

        shown = await window(client, "talk")
        assert shown["current_request"] == 42
        trimmed = ok(await client.post("/sessions/talk/window/trim", json={"max_tokens": 50_000}))
        assert trimmed["messages"][-1]["content"] == "Stop, thank you."
        assert shown["tokens"] == trimmed["tokens"]


@pytest.fixture(scope="module")
async def crash_dsn(postgres: EmbeddedPostgres) -> str:
    """A database without anybody else's jobs."""
    return await migrated_database(postgres, "compaction_turns")


@pytest.fixture
async def alone(crash_dsn: str) -> AsyncIterator[AsyncClient]:
    """The API without a worker, as an admin of a new tenant sees it."""
    async with (
        service(crash_dsn, worker_enabled=False) as application,
        open_runtime(Settings(_env_file=None), served(crash_dsn)) as runtime,
    ):
        owner = await make_tenant(runtime)
        async with client_of(application, owner.key) as opened:
            yield opened


async def test_a_worker_killed_before_the_commit_leaves_the_turn_as_it_was(
    alone: AsyncClient, crash_dsn: str
) -> None:
    await policy(alone, "talk", budget_tokens=1000)
    await append(alone, "talk", REQUEST)
    told = await append(alone, "talk", *[one for number in range(20) for one in step(number, 200)])
    job_id = told["pressure"]["compaction_job_id"]
    async with holding(crash_dsn, LOCK_SESSIONS) as holder, worker_process(crash_dsn) as worker:
        await until_somebody_waits(crash_dsn, holder)
        await worker.kill()
    shown = await window(alone, "talk")
    assert (shown["in_context_from"], shown["current_request"], shown["messages"]) == (0, 1, 41)

    await expire_leases(crash_dsn)
    async with worker_process(crash_dsn):
        job = await over(alone, job_id)

    assert job["status"] == "succeeded", job
    await check(alone, 20)
    assert len(await summaries(alone, "talk")) == 1
