"""The tool message_read: what a context cut or left out is read on, stretch by stretch."""

import re
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.language.text.prompt_text import unescape
from app.runtime import Runtime
from tests.support.api import append, ok, problem
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key
from tests.support.tools import called, refusal

LINES = "".join(f"{number}: <b>x & y</b>\n" for number in range(400))
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sea"}'}}


@pytest.fixture
async def talk(client: AsyncClient) -> AsyncClient:
    """The API, with a call and its long result, the messages 2 and 3 of s1."""
    await append(
        client,
        "s1",
        "Look.",
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
        {"message_id": "m3", "role": "tool", "content": LINES, "tool_call_id": "c1"},
    )
    return client


async def read(client: AsyncClient, **arguments: Any) -> dict[str, Any]:
    return await called(client, "message_read", arguments)


@pytest.mark.parametrize("which", [{"message_id": "m3"}, {"number": 3}])
async def test_following_the_offset_reads_all_of_it_once(
    talk: AsyncClient, which: dict[str, Any]
) -> None:
    lines, offset, steps = "", 0, 0
    while offset is not None:
        answer = await read(talk, offset=offset, **which)
        assert answer["ok"], answer
        head, *shown = answer["result"].split("\n")
        end = int(re.fullmatch(
            rf"Message 3 \(m3\), tool: characters {offset} to (\d+) of {len(LINES)}\. .*", head
        )[1])  # fmt: skip
        data = answer["data"]
        assert (data["total_length"], data["offset"]) == (len(LINES), offset)
        if data["next_offset"] is not None:
            assert shown.pop() == f"There is more: read on with offset {end}."
            assert data["next_offset"] == end > offset
        assert unescape("\n".join(shown)) == LINES[offset:end].removesuffix("\n")
        lines += LINES[offset:end]
        offset, steps = data["next_offset"], steps + 1

    assert lines == LINES
    assert steps > 2


async def test_calls_are_read_too(talk: AsyncClient) -> None:
    answer = await read(talk, number=2)

    assert answer["result"].endswith('I look.\ncalls look: {"at": "sea"}')


@pytest.mark.parametrize("offset", [len(LINES), len(LINES) + 1])
async def test_behind_the_end_there_is_nothing(talk: AsyncClient, offset: int) -> None:
    answer = await read(talk, number=3, offset=offset)

    assert answer["data"]["next_offset"] is None
    assert "\n" not in answer["result"]


@pytest.mark.parametrize("arguments", [{}, {"message_id": "m3", "number": 3}])
async def test_one_message_must_be_named(talk: AsyncClient, arguments: dict[str, Any]) -> None:
    assert "either message_id or number" in await refusal(talk, "message_read", arguments)


@pytest.mark.parametrize(
    "arguments", [{"message_id": "nope"}, {"number": 4}, {"number": 2**31 - 1}]
)
async def test_what_is_not_there_is_said(talk: AsyncClient, arguments: dict[str, Any]) -> None:
    assert "No message" in await refusal(talk, "message_read", arguments)


async def test_what_a_search_cut_in_another_conversation_is_read_on(talk: AsyncClient) -> None:
    long = "\n\n".join(f"Zebra house {one} opens at nine and has {LINES}" for one in range(3))
    told = {"message_id": "m9", "role": "tool", "tool_call_id": "c1", "content": long}
    await append(
        talk, "other", "Look.", {"role": "assistant", "content": "", "tool_calls": [CALL]}, told
    )

    found = await called(talk, "conversation_search", {"query": "zebra house", "role": "tool"})
    answer = await read(talk, message_id="m9", offset=len(long) - 20)

    assert "tool (part of m9): " in found["result"]
    assert answer["result"].startswith("Message m9 of another conversation, tool: characters ")
    assert answer["data"]["session_id"] == "other"
    assert unescape(answer["result"]).endswith(LINES[-20:].removesuffix("\n"))


@pytest.mark.parametrize("why", ["user", "agent", "paused", "system", "set aside"])
async def test_what_a_search_does_not_show_is_not_read(talk: AsyncClient, why: str) -> None:
    whose = {"user": {"user_id": "ben"}, "agent": {"agent_id": "rival"}}.get(why, {})
    if why == "paused":
        agent_id = ok(await talk.get("/sessions/s1"))["agent_id"]
        body = {"session_id": "other", "agent_id": agent_id, "user_id": "ana"}
        ok(await talk.post("/sessions", json=body | {"memory_enabled": False}), 201)
    elif why == "set aside":
        await append(talk, "other", "Hello.")
        point = ok(await talk.post("/sessions/other/checkpoints", json={}), 201)["checkpoint_id"]
    role = "system" if why == "system" else "user"
    await append(talk, "other", {"message_id": "m9", "role": role, "content": "Shh."}, **whose)
    if why == "set aside":
        path = f"/sessions/other/checkpoints/{point}/restore"
        ok(await talk.post(path))

    assert "No message" in await refusal(talk, "message_read", {"message_id": "m9"})


async def test_the_key_of_another_user_reads_nothing(
    talk: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    await append(talk, "s2", "Hello.", user_id="ben")
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")
    async with client_of(app, key.key) as stranger:
        other = {"session_id": "s1", "arguments": {"number": 1}}
        problem(
            await stranger.post("/tools/message_read/call", json=other), 404, "session_not_found"
        )
        await refusal(stranger, "message_read", {"message_id": "m3"}, session_id="s2")
