"""Memories in conflict in a context: the newer first, each said to be in doubt."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, ok
from tests.support.conflicts import FARO, LISBON, PORTO, Doubting, in_doubt, tell
from tests.support.service import client_of
from tests.support.tenants import make_tenant

NEWER = f"- [fact] ana, 3 May 2025: {PORTO} (in conflict with an older statement)"
OLDER = f"- [fact] ana, 2 May 2025: {LISBON} (in conflict with a newer statement)"


@pytest.fixture(scope="module")
async def doubting_app(runtime: Runtime) -> AsyncIterator[Any]:
    async with in_doubt(runtime, Doubting()) as (app, _):
        yield app


@pytest.fixture
async def client(doubting_app: Any, runtime: Runtime) -> AsyncIterator[AsyncClient]:
    owner = await make_tenant(runtime)
    async with client_of(doubting_app, owner.key) as opened:
        await append(opened, "s1", "What is the weather in Lisbon?")
        await tell(opened, LISBON, at="2025-05-02T12:00:00Z")
        await tell(opened, PORTO, at="2025-05-03T12:00:00Z")
        yield opened


async def lines(client: AsyncClient, **body: Any) -> list[str]:
    wanted = {"query": "flat in Lisbon", "include": {"excerpts": False}} | body
    answer = ok(await client.post("/sessions/s1/context", json=wanted))
    return [line for line in answer["prompt"].splitlines() if line.startswith("- [fact]")]


async def test_newer_comes_first_and_both_say_so(client: AsyncClient) -> None:
    assert await lines(client) == [NEWER, OLDER]


async def test_without_a_query_too(client: AsyncClient) -> None:
    await append(client, "s2", {"role": "assistant", "content": "Hello."})
    answer = ok(await client.post("/sessions/s2/context", json={}))

    assert answer["query"]["source"] == "none"
    assert NEWER + "\n" + OLDER in answer["prompt"]


async def test_budget_cuts_the_oldest(client: AsyncClient) -> None:
    await tell(client, FARO, at="2025-05-04T12:00:00Z")
    every = await lines(client)
    assert [line.partition(": ")[0] for line in every] == [
        f"- [fact] ana, {day} May 2025" for day in (4, 3, 2)
    ]

    shown = [await lines(client, max_memory_tokens=tokens) for tokens in range(100, 160, 4)]

    assert every[:2] in shown
    assert shown[-1] == every
    assert all(one == every[: len(one)] for one in shown)
