"""Ids that a bound key chooses: it cannot find out which ids others have."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.runtime import Runtime
from tests.checkpoints.saver_support import body as checkpoint
from tests.support.api import ok, problem
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

SAID = {"role": "user", "content": "I like green tea."}
FIELDS = {
    "session": "session_id", "append": "session_id", "memory": "session_id", "fork": "session_id",
    "saver": "session_id", "copy": "session_id", "message": "message_id", "block": "block_id",
    "folder": "folder_id", "project": "project_id",
}  # fmt: skip
"""Every way to choose an id, and which."""

MINE = "ana:mine"
"""A session of the caller."""


async def create(
    client: AsyncClient,
    way: str,
    chosen: str | None,
    *,
    user_id: str = "ana",
    session_id: str = MINE,
) -> Response:
    """A user's request that makes something with the chosen id, or lets the service choose."""
    named = {} if chosen is None else {FIELDS[way]: chosen}
    memory = {"messages": SAID["content"], "infer": False, "scope": "session"}
    bodies: Mapping[str, tuple[str, dict[str, Any]]] = {
        "session": ("/sessions", named),
        "append": (f"/sessions/{chosen}/messages", {"messages": [SAID]}),
        "memory": ("/memories", memory | named),
        "fork": (f"/sessions/{session_id}/fork", named),
        "copy": (f"/sessions/{session_id}/saver/copy", {"target_session_id": chosen}),
        "message": (f"/sessions/{session_id}/messages", {"messages": [SAID | named]}),
        "block": ("/blocks", {"label": "plan", "value": "v"} | named),
        "folder": ("/folders", {"folder_name": "f", "scope": "user"} | named),
        "project": ("/projects", {"project_name": "p"} | named),
    }
    if way == "saver":
        return await client.put(
            f"/sessions/{chosen}/saver/checkpoints/c2", json=checkpoint(user_id=user_id)
        )
    path, body = bodies[way]
    return await client.post(
        path, json=body | ({} if way in {"fork", "copy"} else owner(way, user_id))
    )


def owner(way: str, user_id: str) -> dict[str, str]:
    return {"owner_id": user_id} if way == "project" else {"user_id": user_id}


@asynccontextmanager
async def of_ana(app: FastAPI, runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    """A client whose key is bound to ana, who has a session with a message and a checkpoint."""
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
    async with client_of(app, key.key) as ana:
        ok(await ana.post(f"/sessions/{MINE}/messages", json={"messages": [SAID]}), 201)
        ok(await ana.put(f"/sessions/{MINE}/saver/checkpoints/c1", json=checkpoint(user_id="ana")))
        yield ana


@asynccontextmanager
async def with_ben(client: AsyncClient) -> AsyncIterator[dict[str, str]]:
    """Ids of ben, by field."""
    ok(await client.post("/users", json={"user_id": "ben"}), 201)
    said = SAID | {"message_id": "m1"}
    body = {"messages": [said], "user_id": "ben"}
    ok(await client.post("/sessions/s1/messages", json=body), 201)
    block = {"block_id": "b1", "label": "plan", "value": "v", "user_id": "ben"}
    ok(await client.post("/blocks", json=block), 201)
    folder = {"folder_id": "f1", "folder_name": "f", "scope": "user", "user_id": "ben"}
    ok(await client.post("/folders", json=folder), 201)
    ok(await client.post("/projects", json={"project_id": "p1", "project_name": "p"}), 201)
    yield {"session_id": "s1", "message_id": "m1", "block_id": "b1", "folder_id": "f1",
           "project_id": "p1"}  # fmt: skip


@pytest.mark.parametrize("way", FIELDS)
async def test_key_of_a_user_is_told_the_same_of_taken_and_of_free_ids(
    app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient, way: str
) -> None:
    async with of_ana(app, runtime, acme) as ana, with_ben(client) as bens:
        taken = bens[FIELDS[way]]
        told = [
            problem(await create(ana, way, chosen), 403, "id_not_allowed")
            for chosen in (taken, f"{taken}-free")
        ]

        for one in told:
            del one["request_id"]
            one["instance"] = one["instance"].replace(f"{taken}-free", taken)
        assert told[0] == told[1]
        assert told[0]["prefix"] == "ana:"

        assert (await create(ana, way, "ana:trip")).is_success
        if way not in {"append", "memory", "saver", "copy"}:
            assert (await create(ana, way, None)).is_success


@pytest.mark.parametrize("way", FIELDS)
async def test_key_of_nobody_is_told_that_an_id_is_taken(
    app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient, way: str
) -> None:
    async with of_ana(app, runtime, acme), with_ben(client) as bens:
        answer = await create(client, way, bens[FIELDS[way]])

        # It sees the session, which is another user's.
        sees = FIELDS[way] == "session_id" and way not in {"session", "fork"}
        problem(answer, 409, "session_mismatch" if sees else "id_taken")
        assert (await create(client, way, f"{bens[FIELDS[way]]}-free")).is_success


async def test_key_goes_on_with_what_it_has_under_any_id(
    app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient
) -> None:
    said = SAID | {"message_id": "m9"}
    body = {"messages": [said], "user_id": "ana"}
    ok(await client.post("/sessions/trip/messages", json=body), 201)

    async with of_ana(app, runtime, acme) as ana:
        again = {"messages": [said, {"role": "assistant", "content": "Noted."}]}
        assert ok(await ana.post("/sessions/trip/messages", json=again), 201)["created"] == 1


async def test_ids_that_the_middleware_derives_are_allowed(
    app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    derived = f"lc-{'0a' * 12}-{'1b' * 12}"
    async with of_ana(app, runtime, acme) as ana:
        ok(await create(ana, "message", derived), 201)
        for other in (derived[:-1], f"{derived}0", f"lc-{'0A' * 12}-{'1b' * 12}"):
            problem(await create(ana, "message", other), 403, "id_not_allowed")


@pytest.mark.parametrize("way", FIELDS)
async def test_key_of_a_name_that_is_not_ascii_chooses_ids_of_every_kind(
    app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient, way: str
) -> None:
    keys = [
        await make_key(runtime, acme.tenant_id, "write", user_id=one) for one in ("张三", "李四")
    ]
    prefix, others = (one.id_prefix for one in keys)
    assert prefix is not None
    assert (await client.get("/keys")).json()["items"][1]["id_prefix"] == prefix
    mine = f"{prefix}mine"
    async with client_of(app, keys[0].key) as caller:
        ok(await caller.post(f"/sessions/{mine}/messages", json={"messages": [SAID]}), 201)
        ok(
            await caller.put(
                f"/sessions/{mine}/saver/checkpoints/c1", json=checkpoint(user_id="张三")
            )
        )
        taken = f"{others}taken"
        async with client_of(app, keys[1].key) as other:
            theirs = f"{others}mine"
            ok(await other.post(f"/sessions/{theirs}/messages", json={"messages": [SAID]}), 201)
            saved = checkpoint(user_id="李四")
            ok(await other.put(f"/sessions/{theirs}/saver/checkpoints/c1", json=saved))
            made = await create(other, way, taken, user_id="李四", session_id=theirs)
            assert made.is_success, made.text

        for chosen in (taken, f"{others}free", f"{prefix}a:b", "trip"):
            refused = await create(caller, way, chosen, user_id="张三", session_id=mine)
            assert problem(refused, 403, "id_not_allowed")["prefix"] == prefix
        made = await create(caller, way, f"{prefix}trip", user_id="张三", session_id=mine)
        assert made.is_success, made.text


class TestUsers:
    async def test_key_of_an_agent_is_told_the_same_of_all_users_of_others(
        self, app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient
    ) -> None:
        ok(await client.post("/users", json={"user_id": "ben", "agent_id": "other"}), 201)
        ok(await client.post("/users", json={"user_id": "ana", "agent_id": "support"}), 201)
        key = await make_key(runtime, acme.tenant_id, "write", agent_id="support")
        async with client_of(app, key.key) as support:
            for user_id in ("ben", "nobody"):
                for path, body in (
                    ("/users", {"user_id": user_id}),
                    ("/sessions", {"user_id": user_id}),
                    ("/memories", {"user_id": user_id, "messages": "I row.", "infer": False}),
                    ("/folders", {"user_id": user_id, "folder_name": "f", "scope": "user"}),
                ):
                    told = problem(await support.post(path, json=body), 403, "id_not_allowed")
                    assert (told["field"], told["prefix"]) == ("user_id", "support~")

            for user_id in ("ana", "support~1"):
                ok(await support.post("/sessions", json={"user_id": user_id}), 201)
            ok(await support.post("/users", json={}), 201)

    async def test_key_of_an_agent_that_acts_for_a_user_is_told_no_more(
        self, app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient
    ) -> None:
        ok(await client.post("/users", json={"user_id": "ben", "agent_id": "other"}), 201)
        key = await make_key(runtime, acme.tenant_id, "write", agent_id="support")
        async with client_of(app, key.key) as support:
            for user_id in ("ben", "nobody"):
                acting = {"KeMem-User": user_id}
                answer = await support.post("/sessions", json={}, headers=acting)
                problem(answer, 403, "id_not_allowed")

    async def test_key_of_a_user_makes_that_user(
        self, app: FastAPI, runtime: Runtime, acme: Caller
    ) -> None:
        key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        async with client_of(app, key.key) as ana:
            assert ok(await ana.post("/users", json={"user_id": "ana"}), 201)["user_id"] == "ana"

    async def test_external_id_of_another_is_not_found_out(
        self, app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient
    ) -> None:
        ok(await client.post("/users", json={"user_id": "ben", "external_id": "e1"}), 201)
        ok(await client.post("/users", json={"user_id": "ana"}), 201)
        key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        async with client_of(app, key.key) as ana:
            for external_id in ("e1", "e2"):
                body = {"external_id": external_id}
                answer = await ana.patch("/users/ana", json=body, headers={"If-Match": "*"})
                problem(answer, 403, "id_not_allowed")
                made = await ana.post("/users", json=body | {"user_id": "ana"})
                problem(made, 403, "id_not_allowed")
