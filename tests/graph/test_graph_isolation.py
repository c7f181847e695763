"""Whose graph it is: tenants, users, agents, members of projects."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import ok, problem
from tests.support.graph import known, people, state
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key


@pytest.fixture(autouse=True)
async def _people(client: AsyncClient) -> None:
    await people(client, "ana", "ben", "cat")


async def paths_of(made: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    entity_id, relation_id = made["source"]["entity_id"], made["relation_id"]
    other = made["destination"]["entity_id"]
    return [
        ("GET", f"/graph/entities/{entity_id}", {}),
        ("GET", f"/graph/entities/{entity_id}/memories", {}),
        ("PATCH", f"/graph/entities/{entity_id}", {"json": {"name": "x"}}),
        ("POST", f"/graph/entities/{entity_id}/aliases", {"json": {"alias": "x"}}),
        ("DELETE", f"/graph/entities/{entity_id}/aliases", {"params": {"alias": "x"}}),
        ("POST", f"/graph/entities/{entity_id}/merge", {"json": {"entity_ids": [other]}}),
        ("POST", f"/graph/entities/{entity_id}/split", {"json": {"name": "x"}}),
        ("GET", f"/graph/relations/{relation_id}/history", {}),
        ("PATCH", f"/graph/relations/{relation_id}", {"json": {"confidence": 0.5}}),
        ("DELETE", f"/graph/relations/{relation_id}", {}),
        ("GET", "/graph/neighbours", {"params": {"entity_id": entity_id}}),
        ("GET", "/graph/paths", {"params": {"from": entity_id, "to": other}}),
        (
            "POST",
            "/graph/relations",
            {"json": {"source_id": entity_id, "relation": "likes", "destination": "y"}},
        ),
    ]


async def sees_nothing(client: AsyncClient, made: dict[str, Any]) -> None:
    for method, path, rest in await paths_of(made):
        answer = await client.request(method, path, **rest)
        assert answer.status_code == 404, (method, path, answer.text)
    for path in ("/graph/entities", "/graph/relations", "/graph/changes"):
        assert ok(await client.get(path))["items"] == []
    for path, params in (("neighbours", {"name": "Ana"}), ("search", {"q": "Ana likes tea"})):
        for whose in ({"user_id": "ana"}, {"project_id": "apollo"}):
            found = ok(await client.get(f"/graph/{path}", params=params | whose))
            assert (found["entities"], found["relations"]) == ([], [])


async def test_graph_is_hidden_from_another_tenant(
    client: AsyncClient, stranger: AsyncClient
) -> None:
    made = await state(client, "Ana", "likes", "tea")

    await sees_nothing(stranger, made)
    assert await known(client) == {("Ana", "likes", "tea")}


async def test_graph_is_hidden_from_another_user(
    client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    made = await state(client, "Ana", "likes", "tea")
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")

    async with client_of(app, key.key) as ben:
        await sees_nothing(ben, made)
        body = {"source": "Ana", "relation": "likes", "destination": "rice", "user_id": "ana"}
        problem(await ben.post("/graph/relations", json=body), 404, "user_not_found")
        del body["user_id"]
        own = ok(await ben.post("/graph/relations", json=body), 201)
        assert own["source"]["entity_id"] != made["source"]["entity_id"]
        assert await known(ben) == {("Ana", "likes", "rice")}


async def test_project_graph_is_visible_to_members_alone(
    client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    ok(await client.put("/projects/apollo/members/ben", json={"role": "viewer"}))
    made = await state(client, "Apollo", "ships_in", "March", project_id="apollo")
    keys = {
        name: await make_key(runtime, acme.tenant_id, "write", user_id=name)
        for name in ("ben", "cat")
    }

    async with client_of(app, keys["ben"].key) as ben:
        assert await known(ben) == {("Apollo", "ships_in", "March")}
        path = f"/graph/relations/{made['relation_id']}"
        problem(await ben.patch(path, json={"confidence": 0.5}), 403, "not_your_graph")
    async with client_of(app, keys["cat"].key) as cat:
        await sees_nothing(cat, made)


async def test_agent_key_sees_its_own_knowledge(
    client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    for agent in ("one", "two"):
        body = {"agent_id": agent, "agent_name": agent}
        ok(await client.post("/agents", json=body), 201)
    rest = {"user_id": None, "scope": "agent"}
    await state(client, "Refunds", "take", "five days", agent_id="one", **rest)
    await state(client, "Parcels", "take", "two days", agent_id="two", **rest)
    key = await make_key(runtime, acme.tenant_id, "write", agent_id="one")

    async with client_of(app, key.key) as one:
        assert await known(one) == {("Refunds", "take", "five days")}
        body = {"source": "a", "relation": "b", "destination": "c", "scope": "agent"}
        problem(await one.post("/graph/relations", json=body), 403, "insufficient_scope")


async def test_graph_is_deleted_with_its_user(client: AsyncClient) -> None:
    await state(client, "Ana", "likes", "tea")
    await state(client, "Ben", "likes", "rice", user_id="ben")

    gone = await client.delete("/users/ana", params={"confirm": True})

    assert gone.is_success, gone.text
    assert await known(client) == {("Ben", "likes", "rice")}
