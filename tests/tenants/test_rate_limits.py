"""Limits of requests, as a client of a limited tenant meets them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import counts, ok, problem, save
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key


@pytest.fixture
async def operator(app: FastAPI, runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    caller = await make_key(runtime, acme.tenant_id, "operator")
    async with client_of(app, caller.key) as client:
        yield client


async def limit(operator: AsyncClient, acme: Caller, **limits: Any) -> None:
    config = {"rate_limits": limits}
    ok(await operator.patch(f"/tenants/{acme.tenant_id}", json={"config": config}))


async def test_a_write_beyond_the_limit_is_refused_and_writes_nothing(
    operator: AsyncClient, client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await limit(operator, acme, write=2, read=100)
    await save(client, "She drinks green tea in the morning.")
    await save(client, "Her parrot is called Rio.")
    before = await counts(dsn, acme.tenant_id)

    body = {"messages": "She lives in Lisbon.", "user_id": "new", "infer": False}
    refused = await client.post("/memories", json=body, headers={"Idempotency-Key": "one"})

    said = problem(refused, 429, "rate_limited")
    assert said["violated-policies"] == ["write"]
    assert 1 <= int(refused.headers["Retry-After"]) <= 30
    assert refused.headers["RateLimit-Policy"] == '"write";q=2;w=60'
    assert refused.headers["RateLimit"].startswith('"write";r=0;t=')
    assert await counts(dsn, acme.tenant_id) == before
    read = await client.get("/memories", params={"user_id": "ana"})
    assert len(ok(read)["items"]) == 2
    assert read.headers["RateLimit"].startswith('"read";r=99;t=')
    # A search reads, though it is a POST.
    found = await client.post("/memories/search", json={"query": "tea", "user_id": "ana"})
    assert found.headers["RateLimit"].startswith('"read";r=98;t=')


async def test_asking_a_model_on_demand_has_a_limit_of_its_own(
    operator: AsyncClient, client: AsyncClient, acme: Caller
) -> None:
    await limit(operator, acme, model=1)
    body = {"user_id": "ana", "messages": [{"role": "user", "content": "I like tea."}]}
    ok(await client.post("/sessions/s1/messages", json=body), 201)
    first = await client.post("/sessions/s1/compact", json={})
    assert first.headers["RateLimit-Policy"] == '"model";q=1;w=60'
    problem(await client.post("/sessions/s1/extract", json={}), 429, "rate_limited")
    ok(await client.post("/sessions/s1/messages", json=body | {"user_id": "ana"}), 201)


async def test_saving_with_inference_counts_as_a_write_and_as_asking_a_model(
    operator: AsyncClient, client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await limit(operator, acme, model=2, write=10)
    said = {"user_id": "ana", "messages": "I live in Lisbon."}
    first = await client.post("/memories", json=said)
    assert first.headers.get_list("RateLimit-Policy") == ['"write";q=10;w=60, "model";q=2;w=60']
    assert first.headers["RateLimit"].startswith('"write";r=9;t=')
    assert '"model";r=1;t=' in first.headers["RateLimit"]
    ok(await client.post("/memories", params={"async": True}, json=said), 202)
    before = await counts(dsn, acme.tenant_id)

    refused = await client.post("/memories", json=said)

    assert problem(refused, 429, "rate_limited")["violated-policies"] == ["model"]
    assert refused.headers.get_list("RateLimit-Policy") == ['"model";q=2;w=60']
    assert await counts(dsn, acme.tenant_id) == before
    tea = said | {"messages": "She drinks green tea.", "infer": False}
    as_it_stands = await client.post("/memories", json=tea)
    assert as_it_stands.headers["RateLimit-Policy"] == '"write";q=10;w=60'
    ok(as_it_stands, 201)


async def test_each_key_has_its_part(
    operator: AsyncClient, client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    await limit(operator, acme, key_read=1)
    ok(await client.get("/users"))
    problem(await client.get("/users"), 429, "rate_limited")
    key = (await make_key(runtime, acme.tenant_id, "read")).key
    async with client_of(app, key) as another:
        ok(await another.get("/users"))


async def test_nothing_is_said_where_nothing_is_limited(client: AsyncClient) -> None:
    answer = await client.get("/users")
    assert "RateLimit" not in answer.headers
    assert "RateLimit-Policy" not in answer.headers


@for_each(
    "limits", [5, {"reads": 5}, {"read": -1}, {"read": "5"}, {"read": True}, {"key_model": 1.5}]
)
async def test_limits_that_cannot_be_meant_are_refused(
    operator: AsyncClient, acme: Caller, limits: Any
) -> None:
    answer = await operator.patch(
        f"/tenants/{acme.tenant_id}", json={"config": {"rate_limits": limits}}
    )
    assert "rate_limits" in problem(answer, 422, "invalid_request")["errors"][0]["detail"]
