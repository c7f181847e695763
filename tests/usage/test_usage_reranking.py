"""Calls of a reranker in the ledger, over a real endpoint."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from time import perf_counter
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from tests.support.api import ok
from tests.support.flaky_server import hangs_up, says, slowly
from tests.support.hits import asked, save_all
from tests.support.patience import PATIENCE
from tests.support.rerank_server import RerankServer, rerank_server
from tests.support.service import SELDOM, client_of, service
from tests.support.tenants import Caller

TEA = "She drinks green tea."
CAT = "猫睡在沙发上。"


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with rerank_server() as server:
        yield server


@pytest.fixture
async def judged(dsn: str, server: RerankServer) -> AsyncIterator[FastAPI]:
    """A service that asks `server` to rerank, under the name `a-model`."""
    async with service(dsn, rerank_model=server.handle()) as app:
        yield app


@pytest.fixture
async def ana(judged: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with client_of(judged, acme.key) as client:
        await save_all(client, TEA, CAT)
        yield client


async def ledger(client: AsyncClient) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = ok(await client.get("/usage"))["items"]
    return [{name: value for name, value in row.items() if name != "day"} for row in items]


def row(calls: int, failures: int) -> dict[str, Any]:
    return {
        "operation": "rerank",
        "model": "a-model",
        "calls": calls,
        "failures": failures,
        "input_tokens": 0,
        "output_tokens": 0,
        "cost": None,
    }


async def shows(client: AsyncClient, *wanted: dict[str, Any]) -> None:
    """Wait until the ledger holds these rows and no others."""
    now: list[dict[str, Any]] = []
    deadline = perf_counter() + PATIENCE
    while perf_counter() < deadline:
        now = await ledger(client)
        if now == list(wanted):
            return
        await asyncio.sleep(0.05)
    assert now == list(wanted)


async def test_each_call_counts_for_its_tenant_alone(
    ana: AsyncClient, judged: FastAPI, other: Caller
) -> None:
    await asked(ana, "green tea")
    await asked(ana, "猫", mode="lexical")

    await shows(ana, row(2, 0))
    async with client_of(judged, other.key) as stranger:
        assert await ledger(stranger) == []
        await save_all(stranger, TEA)
        await asked(stranger, "tea")
        await shows(stranger, row(1, 0))
    await shows(ana, row(2, 0))


@pytest.mark.parametrize(
    "behaviour", [says({"message": "no"}, 500), hangs_up], ids=["500", "hung up"]
)
async def test_one_that_brought_no_scores_is_a_failure(
    ana: AsyncClient, server: RerankServer, behaviour: Any
) -> None:
    server.otherwise = behaviour
    assert (await asked(ana, "green tea"))["degraded"] is True
    server.otherwise = server.score
    assert (await asked(ana, "green tea"))["degraded"] is False

    await shows(ana, row(2, 1))


async def test_one_that_is_too_slow_is_a_failure(
    dsn: str, server: RerankServer, acme: Caller
) -> None:
    server.otherwise = slowly(1, server.score)
    hasty = timedelta(milliseconds=200)
    async with (
        service(dsn, rerank_model=server.handle(), rerank_within=hasty) as app,
        client_of(app, acme.key) as client,
    ):
        await save_all(client, TEA)
        assert (await asked(client, "green tea"))["degraded"] is True

        await shows(client, row(1, 1))


async def test_where_nobody_is_asked_nothing_counts(ana: AsyncClient, server: RerankServer) -> None:
    await asked(ana, "tea", rerank=False)
    await asked(ana, "bicycle", mode="lexical")
    await asyncio.sleep(0.3)

    assert server.requests == []
    assert await ledger(ana) == []


async def test_no_quota_counts_it(dsn: str, server: RerankServer, acme: Caller) -> None:
    settings = {"rerank_model": server.handle(), "daily_calls": 1}
    async with service(dsn, **settings) as app, client_of(app, acme.key) as client:
        await save_all(client, TEA)
        for _ in range(2):
            assert (await asked(client, "tea"))["reranker"] == "http/a-model"
        await shows(client, row(2, 0))
        today = ok(await client.get("/usage"))["today"]

    assert (today["calls"]["used"], today["exhausted"]) == (0, None)


async def test_what_is_not_written_yet_is_written_at_the_end(
    dsn: str, server: RerankServer, acme: Caller, client: AsyncClient
) -> None:
    settings = {"rerank_model": server.handle(), "usage_flush": SELDOM}
    async with service(dsn, **settings) as app, client_of(app, acme.key) as searching:
        await save_all(searching, TEA)
        await asked(searching, "tea")
        assert await ledger(searching) == []

    assert await ledger(client) == [row(1, 0)]
