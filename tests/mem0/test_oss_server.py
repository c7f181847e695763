"""The dialect of mem0's self-hosted server: its shapes, its keys, and what it refuses."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from app.runtime import Runtime
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller, make_key

UUID = "01997b6a-5c7e-7f8a-9b0c-1d2e3f4a5b6c"
TEA = "She drinks green tea in the morning."


def server_client(app: FastAPI, headers: dict[str, str]) -> AsyncClient:
    transport = ASGITransport(app.state.reached, raise_app_exceptions=False)
    return AsyncClient(
        transport=transport, base_url="http://test/mem0-oss", headers=headers, timeout=PATIENCE
    )


@pytest.fixture
async def server(app: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with server_client(app, {"X-API-Key": acme.key}) as opened:
        yield opened


async def ok(server: AsyncClient, method: str, path: str, **options: Any) -> Any:
    response = await server.request(method, path, **options)
    assert response.status_code == 200, response.text
    return response.json()


async def store(server: AsyncClient, text: str = TEA, **fields: Any) -> str:
    body = {"messages": [{"role": "user", "content": text}], "infer": False, "user_id": "ana"}
    added = await ok(server, "POST", "/memories", json=body | fields)
    [result] = added["results"]
    assert (result["memory"], result["event"]) == (text, "ADD")
    return result["id"]


async def texts(server: AsyncClient, **query: Any) -> list[str]:
    found = await ok(server, "GET", "/memories", params=query)
    return [one["memory"] for one in found["results"]]


async def routes(server: AsyncClient) -> list[tuple[str, str]]:
    document = (await server.get("/openapi.json")).json()
    return [
        (method.upper(), re.sub(r"\{\w+\}", UUID, path.replace("{entity_type}", "user")))
        for path, operations in document["paths"].items()
        for method in operations
    ]


async def test_a_memory_is_added_found_changed_and_deleted(server: AsyncClient) -> None:
    memory_id = await store(server, metadata={"topic": "tea"}, run_id="trip")

    query = {"query": "What does she drink?", "filters": {"user_id": "ana"}, "top_k": 3}
    [found] = (await ok(server, "POST", "/search", json=query))["results"]
    assert (found["id"], found["memory"], found["run_id"]) == (memory_id, TEA, "trip")
    assert found["score"] > 0
    one = await ok(server, "GET", f"/memories/{memory_id}")
    assert (one["memory"], one["metadata"]) == (TEA, {"topic": "tea"})
    changed = {"text": "She drinks black tea."}
    assert "message" in await ok(server, "PUT", f"/memories/{memory_id}", json=changed)
    entries = await ok(server, "GET", f"/memories/{memory_id}/history")
    assert [(entry["event"], entry["new_memory"]) for entry in entries] == [
        ("ADD", TEA), ("UPDATE", "She drinks black tea."),
    ]  # fmt: skip
    await ok(server, "DELETE", f"/memories/{memory_id}")
    assert (await server.get(f"/memories/{memory_id}")).status_code == 404
    assert await texts(server, user_id="ana") == []


async def test_lists_and_deletions_keep_to_the_ids_they_name(server: AsyncClient) -> None:
    await store(server)
    await store(server, "He likes coffee.", user_id="ben")

    assert await texts(server, user_id="ana") == [TEA]
    assert len(await texts(server)) == 2
    assert len(await texts(server, top_k=1)) == 1
    for size, status in ((0, 400), (1000, 200), (1001, 400)):
        response = await server.get("/memories", params={"top_k": size})
        assert response.status_code == status, size
    names = {(one["type"], one["id"]) for one in await ok(server, "GET", "/entities")}
    assert {("user", "ana"), ("user", "ben")} <= names
    assert (await server.delete("/memories")).status_code == 400
    for wrong in ({"params": {"user_id": ["ben", "ana"]}}, {"json": {"user_id": "ana"}}):
        path = "/memories" if "params" in wrong else "/memories?user_id=ana"
        assert (await server.request("DELETE", path, **wrong)).status_code == 400
    await ok(server, "DELETE", "/memories", params={"user_id": "ana"})
    assert await texts(server) == ["He likes coffee."]
    await ok(server, "DELETE", "/entities/user/ben")
    assert await texts(server) == []


async def test_reset_takes_an_admin_and_ends_at_the_tenant(
    app: FastAPI, runtime: Runtime, server: AsyncClient, acme: Caller, other: Caller
) -> None:
    await store(server)
    writer = await make_key(runtime, acme.tenant_id, "read", "write")
    async with server_client(app, {"X-API-Key": writer.key}) as opened:
        assert (await opened.post("/reset")).status_code == 403
    async with server_client(app, {"X-API-Key": other.key}) as stranger:
        await store(stranger)
        await ok(server, "POST", "/reset")
        assert await texts(server) == []
        assert await texts(stranger) == [TEA]


async def test_a_key_reaches_nothing_of_others(
    app: FastAPI, runtime: Runtime, server: AsyncClient, acme: Caller, other: Caller
) -> None:
    memory_id = await store(server)
    bens = await make_key(runtime, acme.tenant_id, "read", "write", user_id="ben")
    for caller in (other, bens):
        async with server_client(app, {"X-API-Key": caller.key}) as stranger:
            assert await texts(stranger) == []
            for method, path in (
                ("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/history"),
            ):  # fmt: skip
                body = {"json": {"text": "Changed by somebody."}} if method == "PUT" else {}
                response = await stranger.request(method, f"/memories/{memory_id}{path}", **body)
                assert response.status_code == 404, (method, path)
    assert await texts(server) == [TEA]


async def test_no_route_answers_without_a_key_and_a_bearer_token_is_one(
    app: FastAPI, server: AsyncClient, acme: Caller
) -> None:
    found = await routes(server)
    assert len(found) > 15
    async with server_client(app, {}) as nobody:
        for method, path in found:
            response = await nobody.request(method, path)
            assert (response.status_code, response.json()["code"]) == (401, "missing_key"), path
    async with server_client(app, {"Authorization": f"Bearer {acme.key}"}) as bearer:
        assert await texts(bearer) == []
    async with server_client(app, {"X-API-Key": "kem_unknown"}) as unknown:
        assert (await unknown.get("/memories")).status_code == 401


async def test_what_has_no_counterpart_is_refused_with_a_sentence(server: AsyncClient) -> None:
    procedure = {"messages": [{"role": "user", "content": TEA}], "memory_type": "procedural_memory"}
    for method, path, body in (
        ("POST", "/configure", {}),
        ("GET", "/configure/providers", None),
        ("POST", "/generate-instructions", {}),
        ("POST", "/auth/login", {}),
        ("GET", "/api-keys", None),
        ("GET", "/requests", None),
        ("POST", "/memories", procedure | {"user_id": "ana"}),
    ):
        response = await server.request(method, path, json=body)
        assert (response.status_code, response.json()["code"]) == (400, "no_counterpart"), path
        assert response.json()["detail"]
    assert (await ok(server, "GET", "/configure"))["version"] == "v1.1"
    assert await texts(server) == []
