"""`KeMem-User`: for whom a key is used in one request."""

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, every_page, fields, listed, ok, problem, save, search
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

ANA = {"KeMem-User": "ana"}


@pytest.fixture
async def people(client: AsyncClient) -> dict[str, str]:
    """What ana and bob said; ids of the memories."""
    return {
        name: (await save(client, f"{name} keeps a tortoise.", user_id=name))["memory_id"]
        for name in ("ana", "bob")
    }


async def test_a_user_is_answered_as_a_key_of_the_user(
    client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller, people: dict[str, str]
) -> None:
    await append(client, "s1", "Hello.")
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
    async with client_of(app, key.key) as bound:
        for path in (
            "/memories", f"/memories/{people['ana']}", f"/memories/{people['bob']}", "/users",
            "/users/bob", "/sessions", "/sessions/s1", "/memories/stats", "/memories/decisions",
            "/usage", "/agents", "/jobs", "/projects", "/keys", "/webhooks", "/tenants",
        ):  # fmt: skip
            by_key, by_header = await bound.get(path), await client.get(path, headers=ANA)
            assert by_key.status_code == by_header.status_code, path
            if by_key.status_code == 200:
                assert by_key.json() == by_header.json(), path
            else:
                assert by_key.json()["code"] == by_header.json()["code"], path


async def test_only_that_user_is_seen_and_only_in_that_request(
    client: AsyncClient, people: dict[str, str]
) -> None:
    mine = ok(await client.get("/memories", headers=ANA))["items"]

    assert [row["memory_id"] for row in mine] == [people["ana"]]
    assert len(await listed(client)) == 2
    problem(await client.get(f"/memories/{people['bob']}", headers=ANA), 404, "memory_not_found")
    named = await client.get("/memories", params={"user_id": "bob"}, headers=ANA)
    assert ok(named)["items"] == []


async def test_what_is_saved_is_the_users(client: AsyncClient) -> None:
    body = {"messages": "I keep bees.", "infer": False}
    saved = ok(await client.post("/memories", json=body, headers=ANA), 201)["results"][0]
    foreign = await client.post("/memories", json=body | {"user_id": "bob"}, headers=ANA)

    assert saved["memory"]["user_id"] == "ana"
    problem(foreign, 404, "user_not_found")


async def test_whoever_nobody_knows_has_nothing(client: AsyncClient, people) -> None:
    headers = {"KeMem-User": "nobody"}

    assert ok(await client.get("/memories", headers=headers))["items"] == []
    assert ok(await client.get("/sessions", headers=headers))["items"] == []
    problem(await client.get("/users/nobody", headers=headers), 404, "user_not_found")
    problem(await client.get("/users/ana", headers=headers), 404, "user_not_found")
    body = {"query": "tortoise"}
    found = await client.post("/memories/search", json=body, headers=headers)
    assert ok(found)["results"] == []


async def test_whoever_nobody_knows_reads_no_project_that_is_public(client: AsyncClient) -> None:
    await save(client, "Ana is here.", user_id="ana")
    ok(await client.post("/projects", json={"project_id": "p", "project_name": "P",
                                            "owner_id": "ana"}), 201)  # fmt: skip
    item = await save(
        client, "The tortoise is called Tilly.", scope="project", project_id="p",
        visibility="public",
    )  # fmt: skip
    await save(client, "Bob is here.", user_id="bob")
    body = {"query": "tortoise", "project_id": "p", "scopes": ["project"]}

    for name, status, count in (("bob", 200, 1), ("nobody", 404, 0)):
        headers = {"KeMem-User": name}
        shown = await client.get(f"/memories/{item['memory_id']}", headers=headers)
        assert shown.status_code == status
        found = await client.post("/memories/search", json=body, headers=headers)
        assert found.status_code == status
        assert len(found.json().get("results", [])) == count


async def test_a_key_of_the_user_may_say_so(
    app: FastAPI, runtime: Runtime, acme: Caller, people: dict[str, str]
) -> None:
    key = await make_key(runtime, acme.tenant_id, "read", user_id="ana")
    async with client_of(app, key.key) as bound:
        assert len(ok(await bound.get("/memories", headers=ANA))["items"]) == 1
        other = await bound.get("/memories", headers={"KeMem-User": "bob"})

    problem(other, 403, "acting_user_mismatch")


@pytest.mark.parametrize(
    "value", ["", " ", "a b", "ana,bob", "ana, bob", "a" * 65, "../ana", "<ana>"]
)
async def test_a_name_that_is_no_id_is_refused(client: AsyncClient, value: str) -> None:
    response = await client.get("/memories", headers={"KeMem-User": value})

    assert fields(problem(response, 422, "invalid_request")) == ["header.KeMem-User"]


async def test_two_names_are_refused(client: AsyncClient, people: dict[str, str]) -> None:
    headers = [("KeMem-User", "ana"), ("KeMem-User", "bob")]

    response = await client.get("/memories", headers=headers)

    assert fields(problem(response, 422, "invalid_request")) == ["header.KeMem-User"]


async def test_acting_user_takes_a_key_all_the_same(app: FastAPI) -> None:
    async with client_of(app, None) as nobody:
        problem(await nobody.get("/memories", headers=ANA), 401, "missing_key")
        # What is malformed is not discussed with strangers.
        bad = await nobody.get("/memories", headers={"KeMem-User": "a b"})
    problem(bad, 401, "missing_key")


async def test_the_scopes_of_the_key_stay(
    app: FastAPI, runtime: Runtime, acme: Caller, people: dict[str, str]
) -> None:
    key = await make_key(runtime, acme.tenant_id, "read")
    async with client_of(app, key.key) as reader:
        reader.headers.update(ANA)
        ok(await reader.get(f"/memories/{people['ana']}"))
        problem(await reader.delete(f"/memories/{people['ana']}"), 403, "insufficient_scope")


async def test_a_missing_scope_names_the_header_only_when_it_was_sent(
    app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    key = await make_key(runtime, acme.tenant_id, "write")
    async with client_of(app, key.key) as writer:
        plain = problem(await writer.get("/keys"), 403, "insufficient_scope")
        acting = problem(await writer.get("/keys", headers=ANA), 403, "insufficient_scope")

    assert plain["detail"] == "This key lacks the scope `admin`."
    assert acting["detail"] == f"{plain['detail']} No request with `KeMem-User` has it."


async def test_whoever_acts_for_a_user_is_no_admin(client: AsyncClient, people) -> None:
    """As no key that is bound to a user may be one."""
    ok(await client.post("/agents", json={"agent_id": "a1", "agent_name": "A"}), 201)
    for method, path in (
        ("DELETE", "/agents/a1"), ("DELETE", "/users/ana"), ("GET", "/keys"), ("GET", "/webhooks"),
    ):  # fmt: skip
        refusal = await client.request(method, path, headers=ANA)
        assert problem(refusal, 403, "insufficient_scope")["required_scope"] == "admin"


async def test_a_key_of_an_agent_acts_for_those_at_home_there(
    client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    homes = (("a1", "ana"), ("a2", "bob"))
    for agent_id, user_id in homes:
        ok(await client.post("/agents", json={"agent_id": agent_id, "agent_name": "A"}), 201)
        ok(await client.post("/users", json={"user_id": user_id, "agent_id": agent_id}), 201)
    for _, user_id in homes:
        for text_agent in ("a1", "a2", None):
            await save(client, f"{user_id} told {text_agent} of a tortoise.", user_id=user_id,
                       **({"agent_id": text_agent} if text_agent else {}))  # fmt: skip
    key = await make_key(runtime, acme.tenant_id, "write", agent_id="a1")
    async with client_of(app, key.key) as bound:
        hers = ok(await bound.get("/memories", headers=ANA))["items"]
        his = ok(await bound.get("/memories", headers={"KeMem-User": "bob"}))["items"]

    assert {(row["user_id"], row["agent_id"]) for row in hers} == {("ana", "a1"), ("ana", None)}
    assert his == []


async def test_another_tenants_user_of_that_name_is_somebody_else(
    client: AsyncClient, stranger: AsyncClient, people: dict[str, str]
) -> None:
    assert ok(await stranger.get("/memories", headers=ANA))["items"] == []
    problem(await stranger.get(f"/memories/{people['ana']}", headers=ANA), 404, "memory_not_found")


async def test_an_idempotency_key_belongs_to_one_user(client: AsyncClient) -> None:
    body = {"messages": "I keep bees.", "infer": False}
    once = {"Idempotency-Key": "k1"}
    first = ok(await client.post("/memories", json=body, headers=ANA | once), 201)
    again = ok(await client.post("/memories", json=body, headers=ANA | once), 201)
    bobs = await client.post("/memories", json=body, headers={"KeMem-User": "bob"} | once)
    body, once = body | {"user_id": "ana"}, {"Idempotency-Key": "k2"}
    ok(await client.post("/memories", json=body, headers=ANA | once))
    application = await client.post("/memories", json=body, headers=once)

    assert first == again
    [his] = ok(bobs, 201)["results"]
    assert his["memory"]["user_id"] == "bob"
    assert his["memory_id"] != first["results"][0]["memory_id"]
    [mine] = ok(application)["results"]
    assert mine["event"] == "NONE"


async def test_the_document_describes_it_once(app: FastAPI) -> None:
    document = app.openapi()

    scheme = document["components"]["securitySchemes"]["acting_user"]
    assert (scheme["in"], scheme["name"]) == ("header", "KeMem-User")
    guarded = [
        operation["security"]
        for path in document["paths"].values()
        for operation in path.values()
        if {"key": []} in operation.get("security", [])
    ]
    assert len(guarded) > 100
    assert all(one == [{"key": []}, {"key": [], "acting_user": []}] for one in guarded)


async def test_jobs_and_context_are_the_users(client: AsyncClient, people) -> None:
    await append(client, "s1", "I moved to Bonn.", user_id="ana")
    await append(client, "s2", "I moved to Rome.", user_id="bob")

    ok(await client.post("/sessions/s1/context", json={}, headers=ANA))
    problem(
        await client.post("/sessions/s2/context", json={}, headers=ANA), 404, "session_not_found"
    )
    jobs = await every_page(client, "/jobs")
    mine = ok(await client.get("/jobs", headers=ANA))["items"]
    assert {row["user_id"] for row in mine} <= {"ana"}
    assert len(mine) < len(jobs) or not jobs
    assert (await search(client, "tortoise", user_id="ana"))["results"]
