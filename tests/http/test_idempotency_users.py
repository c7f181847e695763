"""`Idempotency-Key` and `KeMem-User`: the same words of two users are two requests."""

import asyncio
from typing import Any

from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.runtime import Runtime
from tests.support.api import execute, ok, problem
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

BEES = {"messages": "I keep bees.", "infer": False}


async def post(
    client: AsyncClient, user: str | None, body: dict[str, Any] = BEES, path: str = "/memories"
) -> Response:
    headers = {"Idempotency-Key": "k1"} | ({"KeMem-User": user} if user else {})
    return await client.post(path, json=body, headers=headers)


def memory(response: Response) -> dict[str, Any]:
    return response.json()["results"][0]["memory"]


async def test_each_user_is_answered_with_their_own(client: AsyncClient) -> None:
    first = {user: await post(client, user) for user in ("ana", "bob")}
    again = {user: await post(client, user) for user in ("ana", "bob")}

    for user in ("ana", "bob"):
        assert memory(first[user])["user_id"] == user
        assert "Idempotency-Replayed" not in first[user].headers
        assert again[user].headers["Idempotency-Replayed"] == "true"
        assert again[user].json() == first[user].json()


async def test_users_do_not_wait_for_each_other(client: AsyncClient) -> None:
    answers = await asyncio.gather(*(post(client, f"user-{n}") for n in range(5)))

    assert [answer.status_code for answer in answers] == [201] * 5
    assert {memory(answer)["user_id"] for answer in answers} == {f"user-{n}" for n in range(5)}


async def test_the_application_is_somebody_else(client: AsyncClient) -> None:
    as_ana = await post(client, "ana")
    itself = await post(client, None, BEES | {"user_id": "bob"})

    assert (memory(as_ana)["user_id"], memory(itself)["user_id"]) == ("ana", "bob")


async def test_of_one_user_another_request_is_refused(client: AsyncClient) -> None:
    ok(await post(client, "ana"), 201)

    response = await post(client, "ana", BEES | {"messages": "I keep hens."})

    problem(response, 422, "idempotency_key_reused")


async def test_a_users_own_key_says_the_same_with_its_name_and_without(
    app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
    async with client_of(app, key.key) as bound:
        silent = ok(await post(bound, None), 201)
        named = await post(bound, "ana")

    assert named.headers["Idempotency-Replayed"] == "true"
    assert named.json() == silent


async def test_uploads_are_told_apart_too(client: AsyncClient) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    body = {"folder_name": "Papers", "scope": "user", "user_id": "ana"}
    folder = ok(await client.post("/folders", json=body), 201)["folder_id"]
    path, params = f"/folders/{folder}/files", {"file_name": "a.txt", "on_same_name": "suffix"}
    once = {"Idempotency-Key": "k1", "Content-Type": "text/plain"}

    itself, as_ana, again = [
        await client.post(path, content=b"Bees.", params=params, headers=once | extra)
        for extra in ({}, {"KeMem-User": "ana"}, {})
    ]

    assert ok(again, 202) == ok(itself, 202)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert ok(as_ana, 202) != ok(itself, 202)


async def test_no_client_can_send_what_a_users_key_is_stored_as(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    ok(await post(client, "ana"), 201)
    [row] = await execute(
        dsn, "SELECT idempotency_key FROM idempotency_keys WHERE tenant_id = $1", acme.tenant_id
    )

    stored = {"Idempotency-Key": row["idempotency_key"]}
    response = await client.post("/memories", json=BEES | {"user_id": "ana"}, headers=stored)

    problem(response, 422, "invalid_request")
