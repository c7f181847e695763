"""Blocks of a session: who sees them, what edits them, and what takes them away."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.blocks.conftest import Desk
from tests.support.api import dump, every_page, fields, ok, problem, tables_with
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

pytestmark = pytest.mark.usefixtures("people")


async def add(client: AsyncClient, label: str = "plan", **given: Any) -> dict[str, Any]:
    body = {"label": label, "session_id": "s1", "value": "Pack."} | given
    return ok(await client.post("/blocks", json=body), 201)


async def test_block_of_a_session_is_seen_in_its_session_alone(
    client: AsyncClient, desk: Desk
) -> None:
    made = await add(client)

    assert (made["session_id"], made["user_id"]) == ("s1", "ana")
    assert await desk.said("s1") == {"plan": "Pack."}
    assert await desk.said("s2") == await desk.said("s3") == {}
    answer = ok(await client.post("/sessions/s1/context", json={}))
    assert "Pack." in answer["prompt"]
    listed = await every_page(client, "/blocks", session_id="s1")
    assert [row["block_id"] for row in listed] == [made["block_id"]]
    assert await every_page(client, "/blocks", session_id="s2") == []


async def test_block_of_a_session_takes_the_place_of_others_with_its_label(
    client: AsyncClient, desk: Desk, make: Any
) -> None:
    await make("shared", "plan", value="Shared.")
    await make("anas", "plan", value="Ana's.", user_id="ana")
    assert await desk.said("s1") == {"plan": "Ana's."}

    await add(client)

    assert await desk.said("s1") == {"plan": "Pack."}
    await desk.append("s1", "plan", "Go.")
    assert await desk.said("s1") == {"plan": "Pack.\nGo."}
    assert ok(await client.get("/blocks/anas"))["value"] == "Ana's."
    assert await desk.said("s2") == {"plan": "Shared."}


async def test_a_session_has_each_label_once(client: AsyncClient) -> None:
    body = {"label": "plan", "session_id": "s1"}
    answers = await asyncio.gather(*(client.post("/blocks", json=body) for _ in range(4)))
    assert sorted(one.status_code for one in answers) == [201, 409, 409, 409]
    other = await add(client, "notes")
    await add(client, session_id="s2")

    path = f"/blocks/{other['block_id']}"
    renamed = await client.patch(path, json={"label": "plan"}, headers={"If-Match": "*"})
    problem(renamed, 409, "label_taken")


async def test_what_it_cannot_be(client: AsyncClient) -> None:
    for further in ({"user_id": "ana"}, {"agent_id": "a1"}, {"per_user": True}):
        body = {"label": "plan", "session_id": "s1"} | further
        assert fields(problem(await client.post("/blocks", json=body), 422, "invalid_request"))
    missing = {"label": "plan", "session_id": "none"}
    problem(await client.post("/blocks", json=missing), 404, "session_not_found")
    block_id = (await add(client))["block_id"]
    problem(await client.put(f"/agents/a1/blocks/{block_id}"), 409, "bound_to_session")
    body = {"agent_name": "B", "block_ids": [block_id]}
    problem(await client.post("/agents", json=body), 409, "bound_to_session")
    ok(await client.post("/sessions/s2/end"))
    ended = {"label": "plan", "session_id": "s2"}
    problem(await client.post("/blocks", json=ended), 409, "session_ended")


async def test_keys_of_others_see_nothing_of_it(
    app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient
) -> None:
    block_id = (await add(client))["block_id"]
    for restriction, sees in (
        ({"user_id": "ana"}, True), ({"user_id": "ben"}, False),
        ({"agent_id": "a1"}, True), ({"agent_id": "a2"}, False),
    ):  # fmt: skip
        key = await make_key(runtime, acme.tenant_id, "write", **restriction)
        async with client_of(app, key.key) as bound:
            answer = await bound.get(f"/blocks/{block_id}")
            assert answer.status_code == (200 if sees else 404), restriction
            listed = {row["block_id"] for row in await every_page(bound, "/blocks")}
            assert listed == ({block_id} if sees else set()), restriction
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")
    async with client_of(app, key.key) as ben:
        body = {"label": "notes", "session_id": "s1"}
        problem(await ben.post("/blocks", json=body), 404, "session_not_found")


async def test_block_of_a_session_goes_with_its_session_and_with_its_user(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await add(client, value="The secret garden.")
    await add(client, session_id="s3", value="The secret lake.")

    ok(await client.delete("/sessions/s1", params={"confirm": "true"}))
    assert tables_with("secret garden", await dump(dsn, acme.tenant_id)) == []
    ok(await client.delete("/users/ana", params={"confirm": "true"}))
    assert tables_with("secret lake", await dump(dsn, acme.tenant_id)) == []


async def test_block_of_a_session_is_exported_with_its_user_and_its_agent(
    client: AsyncClient,
) -> None:
    await add(client, value="The secret garden.")
    for owner, there in (
        ({"user_id": "ana"}, True), ({"user_id": "ben"}, False),
        ({"agent_id": "a1"}, True), ({"agent_id": "a2"}, False),
    ):  # fmt: skip
        answer = await client.get("/export", params=owner)
        assert answer.status_code == 200, answer.text
        assert ("secret garden" in answer.text) == there, owner


async def test_a_fork_has_copies_with_the_texts_of_that_time(
    client: AsyncClient, desk: Desk
) -> None:
    said = {"user_id": "ana", "messages": [{"role": "user", "content": "One."}]}
    block_id = (await add(client))["block_id"]
    ok(await client.post("/sessions/s1/messages", json=said), 201)
    await desk.append("s1", "plan", "Go.")
    ok(await client.post("/sessions/s1/messages", json=said), 201)
    await desk.append("s1", "plan", "Return.")
    await add(client, "late")

    early = ok(await client.post("/sessions/s1/fork", json={"at_sequence_no": 1}), 201)
    now = ok(await client.post("/sessions/s1/fork", json={}), 201)

    assert await desk.said(early["session_id"]) == {"plan": "Pack.\nGo."}
    assert await desk.said(now["session_id"]) == {"late": "Pack.", "plan": "Pack.\nGo.\nReturn."}
    await desk.append(now["session_id"], "plan", "Rest.")
    assert ok(await client.get(f"/blocks/{block_id}"))["value"] == "Pack.\nGo.\nReturn."
    [copy] = await every_page(client, "/blocks", session_id=early["session_id"])
    [entry] = await every_page(client, f"/blocks/{copy['block_id']}/history")
    assert (entry["event"], entry["value"]) == ("copy", "Pack.\nGo.")
