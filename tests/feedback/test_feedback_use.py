"""An agent says which memories of a context its answer drew on; and what words let one guess."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, execute, fields, ok, problem, save
from tests.support.model_service import app_of
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key
from tests.support.working import extracted, working

PEANUTS = "The user is allergic to peanuts."
LUFTHANSA = "The user works as a pilot at Lufthansa."


@pytest.fixture
async def client(runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    """A service on the runtime that the test holds, so that it can write what was shown."""
    async with app_of(runtime) as application, client_of(application, acme.key) as opened:
        yield opened


@pytest.fixture
async def shown(client: AsyncClient, runtime: Runtime) -> list[str]:
    """Two memories that stood in the context of session `s`."""
    memory_ids = [(await save(client, text))["memory_id"] for text in (PEANUTS, LUFTHANSA)]
    await append(client, "s", "What can I cook tonight?")
    context = ok(await client.post("/sessions/s/context", json={"query": "allergic pilot"}))
    assert {one["memory_id"] for one in context["used"]} == set(memory_ids)
    await runtime.injections.flush(everything=True)
    return memory_ids


async def report(client: AsyncClient, memory_ids: list[str], **rest: Any) -> dict[str, Any]:
    body = {"session_id": "s", "memory_ids": memory_ids}
    answer: dict[str, Any] = ok(await client.post("/feedback/used", json=body, **rest))
    return answer


async def items(client: AsyncClient) -> dict[str, Any]:
    figures: dict[str, Any] = ok(await client.get("/stats/effect"))["totals"]["items"]
    return figures


async def test_a_report_is_counted_once(client: AsyncClient, shown: list[str]) -> None:
    first = await report(client, [shown[0], "mem_unknown", shown[0]])
    second = await report(client, shown)

    assert first == {"session_id": "s", "used": 1, "repeated": 0, "not_shown": ["mem_unknown"]}
    assert second == {"session_id": "s", "used": 1, "repeated": 1, "not_shown": []}
    figures = await items(client)
    assert (figures["injected"], figures["used"], figures["use_rate"]) == (2, 2, 1.0)
    assert figures["used_estimated"] == 0


async def test_a_request_that_is_repeated_gets_its_answer_again(
    client: AsyncClient, shown: list[str]
) -> None:
    key = {"Idempotency-Key": "one"}

    assert await report(client, shown, headers=key) == await report(client, shown, headers=key)


async def test_reports_at_once_count_each_memory_once(
    client: AsyncClient, shown: list[str]
) -> None:
    answers = await asyncio.gather(
        *(report(client, shown[:: 1 if number % 2 else -1]) for number in range(6))
    )

    assert sum(answer["used"] for answer in answers) == 2
    assert sum(answer["repeated"] for answer in answers) == 10


async def test_a_report_changes_no_memory(client: AsyncClient, shown: list[str]) -> None:
    before = ok(await client.get(f"/memories/{shown[0]}"))

    await report(client, shown)

    assert ok(await client.get(f"/memories/{shown[0]}")) == before


async def test_a_reported_memory_is_not_never_used(client: AsyncClient, shown: list[str]) -> None:
    await report(client, shown[:1])

    assert ok(await client.get("/stats/memories"))["now"]["never_used"] == 1


@pytest.mark.parametrize(("count", "status"), [(0, 422), (1, 200), (200, 200), (201, 422)])
async def test_a_report_has_bounds(
    client: AsyncClient, shown: list[str], count: int, status: int
) -> None:
    ids = [*shown[:1], *(f"mem_{number}" for number in range(count - 1))] if count else []

    response = await client.post("/feedback/used", json={"session_id": "s", "memory_ids": ids})

    if status == 422:
        assert fields(problem(response, 422, "invalid_request")) == ["body.memory_ids"]
    else:
        assert ok(response)["used"] == 1


async def test_nobody_reports_for_sessions_of_others(
    client: AsyncClient,
    shown: list[str],
    stranger: AsyncClient,
    app: FastAPI,
    runtime: Runtime,
    acme: Caller,
) -> None:
    await append(client, "t", "Hi", user_id="ben")
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")
    body = {"session_id": "s", "memory_ids": shown}

    async with client_of(app, key.key) as ben:
        for caller in (stranger, ben):
            response = await caller.post("/feedback/used", json=body)
            problem(response, 404, "session_not_found")
    assert (await items(client))["used"] == 0


async def test_words_of_an_answer_are_an_estimate(
    client: AsyncClient, runtime: Runtime, dsn: str, shown: list[str]
) -> None:
    answer = {"role": "assistant", "content": "Noodles; no sauce, as you are allergic to peanuts."}
    await append(client, "s", answer, "Thanks, I moved to Bonn last year.")

    async with working(runtime, dsn):
        await extracted(client, "s")

    figures = await items(client)
    assert (figures["used"], figures["used_estimated"]) == (0, 1)
    assert figures["use_rate_estimated"] == 0.5


async def test_an_answer_is_read_without_news_of_the_user_too(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller, shown: list[str]
) -> None:
    async with working(runtime, dsn):
        await extracted(client, "s")
        answer = {"role": "assistant", "content": "You are allergic to peanuts, so no sauce."}
        await append(client, "s", answer)
        await extracted(client, "s")

    rows = await execute(
        dsn,
        "SELECT memory_id FROM context_injections "
        "WHERE tenant_id = $1 AND used_estimated_at IS NOT NULL",
        acme.tenant_id,
    )
    assert [row["memory_id"] for row in rows] == [shown[0]]
