"""What the pressure counts: all that is sent, once; and what its notices say."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient

from app.language.llm.tokens import EstimatedTokens, message_tokens, tool_tokens
from tests.support.api import append, execute, ok, save
from tests.support.conversations import policy, window
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller

COUNTER = EstimatedTokens()
TOOL = {
    "type": "function",
    "function": {
        "name": "book_train",
        "description": "Books a seat on a train. " * 20,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
LONG = "The blue notebook lies on the shelf near the window. "


async def context(client: AsyncClient, **body: Any) -> dict[str, Any]:
    return ok(await client.post("/sessions/s/context", json=body))


async def remembered(client: AsyncClient) -> None:
    """A profile, a block and memories, which a context of the session shows."""
    await client.patch("/users/ana", json={"profile": {"city": "Bonn"}, "user_name": "Ana"})
    await save(client, "Ana takes the train to work every day.")
    agent = ok(await client.get("/sessions/s"))["agent_id"]
    body = {"label": "human", "value": "Ana likes short answers."}
    block = ok(await client.post("/blocks", json=body), 201)
    ok(await client.put(f"/agents/{agent}/blocks/{block['block_id']}"))


async def noted(dsn: str, caller: Caller) -> dict[str, int]:
    """What was noted of the last context, once it is."""
    async with asyncio.timeout(PATIENCE):
        while True:
            [row] = await execute(
                dsn,
                "SELECT beside_tokens, memory_tokens FROM sessions WHERE tenant_id = $1",
                caller.tenant_id,
            )
            if row["beside_tokens"] is not None:
                return dict(row)
            await asyncio.sleep(0.02)


async def test_all_that_is_sent_counts(client: AsyncClient) -> None:
    await append(client, "s", "Book me a train.", user_id="ana")
    await remembered(client)

    answer = await context(client, system_prompt="You book trains. " * 10, tools=[TOOL, TOOL])

    shown = {one["name"]: one["tokens"] for one in answer["parts"]}
    counted = ("instructions", "profile", "blocks", "memories", "window")
    assert all(shown[name] > 0 for name in counted)
    tools = tool_tokens(COUNTER, [TOOL, TOOL])
    assert tools > 200
    assert answer["pressure"]["tokens"] == answer["tokens"] + tools
    known = await context(client, system_prompt="You book trains. " * 10, tools_tokens=tools)
    assert known["pressure"] == answer["pressure"]


@pytest.mark.parametrize("over", [-1, 0, 1])
async def test_what_is_reserved_is_for_instructions_and_tools(
    client: AsyncClient, over: int
) -> None:
    instructions = "You book trains. " * 10
    own = COUNTER.count(instructions) + 150
    await policy(client, "s", budget_tokens=1000, reserved_tokens=own + over)
    told = await append(client, "s", "Book me a train.")

    answer = await context(client, system_prompt=instructions, tools_tokens=150)

    there = message_tokens(COUNTER, content="Book me a train.")
    assert told["pressure"]["tokens"] == own + over + there
    assert answer["pressure"]["tokens"] == max(own, own + over) + there
    [shown] = [one for one in answer["parts"] if one["name"] == "window"]
    assert shown["budget"] == 1000 - max(own, own + over)


@pytest.mark.parametrize(
    ("tools", "level"), [(699, "ok"), (700, "warn"), (999, "warn"), (1000, "flush")]
)
async def test_tools_alone_raise_the_level(client: AsyncClient, tools: int, level: str) -> None:
    await policy(client, "s", budget_tokens=1000)
    there = (await append(client, "s", "Hello"))["pressure"]["tokens"]

    answer = await context(client, tools_tokens=tools - there)

    assert (answer["pressure"]["level"], answer["pressure"]["tokens"]) == (level, tools)


async def test_an_append_counts_what_the_last_context_had(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    await append(client, "s", "Book me a train.", user_id="ana")
    await remembered(client)
    before = ok(await client.get("/sessions/s"))
    answer = await context(client, system_prompt="You book trains. " * 10, tools=[TOOL])
    known = await noted(dsn, acme)

    told = await append(client, "s", {"role": "assistant", "content": "Done."})

    reply = message_tokens(COUNTER, content="Done.")
    assert told["pressure"]["tokens"] == answer["pressure"]["tokens"] + reply
    assert known["memory_tokens"] == answer["memory_tokens"] > 0
    assert (await window(client, "s"))["pressure"]["tokens"] == told["pressure"]["tokens"]
    after = ok(await client.get("/sessions/s"))
    assert (after["version"], after["create_time"]) == (before["version"], before["create_time"])


async def test_that_a_context_was_shown_is_no_change_of_the_session(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    await append(client, "s", "Hello")
    before = ok(await client.get("/sessions/s"))

    await context(client, tools_tokens=10)

    await noted(dsn, acme)
    assert ok(await client.get("/sessions/s")) == before


async def test_what_was_counted_is_not_learned_as_a_providers_surplus(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    """System prompt and tools were in the provider's count and not in ours."""
    await append(client, "s", "Book me a train.")
    answer = await context(client, tools_tokens=900)
    await noted(dsn, acme)

    reply = {"role": "assistant", "content": "Done."}
    sent = answer["tokens"] + 900
    await append(client, "s", reply, usage={"input_tokens": sent})

    assert (await window(client, "s"))["token_scale"] == 1.0


async def test_a_smaller_window_of_the_request_is_what_it_is_measured_by(
    client: AsyncClient,
) -> None:
    await append(client, "s", *talk(12))

    answer = await context(client, window_tokens=300)

    pressure = answer["pressure"]
    assert answer["window"]["left_out"] > 0
    assert (pressure["level"], pressure["budget_tokens"]) == ("flush", 300)
    assert f"{answer['window']['left_out']} older messages are left out" in pressure["notice"]


async def test_the_messages_of_a_request_count_instead_of_the_stored(client: AsyncClient) -> None:
    await append(client, "s", *talk(12))
    given = [{"role": "user", "content": "Hello"}]

    answer = await context(client, messages=given)

    assert answer["pressure"]["tokens"] == answer["tokens"]


@pytest.mark.parametrize("automatic", [True, False])
async def test_a_notice_promises_a_summary_only_where_one_is_made(
    client: AsyncClient, automatic: bool
) -> None:
    await policy(client, "s", budget_tokens=300, automatic=automatic)
    told = await append(client, "s", *talk(12))

    answer = await context(client)

    for pressure in (told["pressure"], answer["pressure"]):
        assert pressure["level"] == "flush"
        assert ("replaced by a summary" in pressure["notice"]) == automatic
        assert (pressure["compaction_job_id"] is not None) == automatic
    assert "left out" not in told["pressure"]["notice"]
    assert answer["window"]["left_out"] > 0
    assert f"{answer['window']['left_out']} older messages" in answer["pressure"]["notice"]


async def test_a_job_that_is_done_is_promised_no_more(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    await policy(client, "s", budget_tokens=300)
    await append(client, "s", *talk(12))
    await execute(
        dsn,
        "UPDATE jobs SET status = 'succeeded', finished_at = now() WHERE tenant_id = $1",
        acme.tenant_id,
    )

    pressure = (await context(client))["pressure"]

    assert pressure["compaction_job_id"] is None
    assert "summary" not in pressure["notice"]


def talk(count: int) -> list[Any]:
    return [
        {"role": "user" if number % 2 == 0 else "assistant", "content": f"{number}. " + LONG * 2}
        for number in range(count)
    ]
