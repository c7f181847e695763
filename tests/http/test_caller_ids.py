"""Ids in every script, through all that carries one: paths, queries, headers, lists, rows."""

import json
import unicodedata
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.platform.values.fields import ID_PATTERN
from app.runtime import Runtime
from tests.exports.exports_support import exported, imported, send, with_row
from tests.support.api import (
    append,
    every_page,
    execute,
    fields,
    found,
    listed,
    ok,
    problem,
    save,
    search,
)
from tests.support.document import document
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant
from tests.support.working import working

IDS = [
    "张三", "José", "محمد", "山田 太郎", "🦊" * 64, "%2F", "%", "a?b#c&d=e+f", "\\",
    "<b>\"'", "...x", "-x",
]  # fmt: skip
ZOE = "Zoë"
APART = unicodedata.normalize("NFD", ZOE)


def at(text: str) -> str:
    return quote(text, safe="")


def acting(text: str) -> dict[str, str]:
    return {"KeMem-User": quote(text, safe="")}


@pytest.mark.parametrize("name", IDS)
async def test_a_user_is_one_in_path_query_body_and_header(client: AsyncClient, name: str) -> None:
    made = ok(await client.post("/users", json={"user_id": name}), 201)
    memory_id = (await save(client, "My favourite drink is green tea.", user_id=name))["memory_id"]
    await save(client, "My favourite drink is green tea.", user_id="somebody")

    assert made["user_id"] == ok(await client.get(f"/users/{at(name)}"))["user_id"] == name
    assert await listed(client, user_id=name) == [memory_id]
    assert await found(client, user_id=name) == [memory_id]
    by_filter = await search(client, filters={"user_id": {"in": [name]}}, user_id=name)
    assert [hit["memory_id"] for hit in by_filter["results"]] == [memory_id]
    mine = ok(await client.get("/memories", headers=acting(name)))["items"]
    assert [row["user_id"] for row in mine] == [name]
    changed = await client.patch(f"/users/{at(name)}", json={"user_name": "n"})
    assert ok(changed)["user_name"] == "n"
    receipt = ok(await client.delete(f"/users/{at(name)}", params={"confirm": True}))
    assert receipt["deleted"]["memories"] == 1
    problem(await client.get(f"/users/{at(name)}"), 404, "user_not_found")
    assert len(await listed(client)) == 1


@pytest.mark.parametrize("name", IDS)
async def test_sessions_agents_and_projects_take_the_same(client: AsyncClient, name: str) -> None:
    ok(await client.post("/agents", json={"agent_id": name, "agent_name": "A"}), 201)
    ok(await client.post("/users", json={"user_id": name, "agent_id": name}), 201)
    project = {"project_id": name, "project_name": "P", "owner_id": name}
    ok(await client.post("/projects", json=project), 201)
    await append(client, at(name), "I like green tea.", user_id=name, agent_id=name)
    about = {"user_id": name, "agent_id": name, "session_id": name, "project_id": name}
    saved = (await save(client, "The project ships in March.", **about))["memory"]

    assert {key: saved[key] for key in about} == about
    of_run = ok(await client.get("/memories", params={"run_id": name}))["items"]
    assert [one["memory_id"] for one in of_run] == [saved["memory_id"]]
    assert ok(await client.get(f"/agents/{at(name)}"))["agent_id"] == name
    assert ok(await client.get(f"/projects/{at(name)}/members"))["items"][0]["user_id"] == name
    session = ok(await client.get(f"/sessions/{at(name)}"))
    assert (session["session_id"], session["user_id"], session["agent_id"]) == (name, name, name)
    ok(await client.post(f"/sessions/{at(name)}/context", json={"query": "tea"}))
    assert (await client.get(f"/users/{at(name)}/profile")).is_success
    assert (await client.get(f"/projects/{at(name)}/profile")).is_success


async def test_a_session_of_the_longest_ids_is_read(
    client: AsyncClient, runtime: Runtime, dsn: str
) -> None:
    name = "🦊" * 64
    said = "I am allergic to peanuts and I live in Lisbon."
    await append(client, at(name), said, user_id=name, agent_id=name)

    async with working(runtime, dsn):
        read = await client.post(f"/sessions/{at(name)}/extract", json={"wait": True})
        assert ok(read)["status"] == "succeeded"
    assert await listed(client, user_id=name)


@pytest.mark.parametrize("place", ["body", "path", "query", "header"])
@pytest.mark.parametrize(
    ("name", "fits"),
    [("🦊", True), ("名" * 63, True), ("名" * 64, True), ("名" * 65, False), ("a\u200db", False)],
)
async def test_every_place_has_the_same_limits(
    client: AsyncClient, place: str, name: str, *, fits: bool
) -> None:
    if place == "body":
        response = await client.post("/users", json={"user_id": name})
    elif place == "path":
        response = await client.get(f"/users/{at(name)}")
    elif place == "query":
        response = await client.get("/memories", params={"user_id": name})
    else:
        response = await client.get("/memories", headers=acting(name))

    if fits:
        assert response.status_code == {"body": 201, "path": 404}.get(place, 200), response.text
    else:
        where = "KeMem-User" if place == "header" else "user_id"
        assert fields(problem(response, 422, "invalid_request")) == [f"{place}.{where}"]


async def test_a_name_typed_in_two_forms_is_one_user(client: AsyncClient) -> None:
    ok(await client.post("/users", json={"user_id": APART}), 201)
    problem(await client.post("/users", json={"user_id": ZOE}), 409, "id_taken")
    first = (await save(client, "My favourite drink is green tea.", user_id=APART))["memory_id"]

    for name in (ZOE, APART):
        assert ok(await client.get(f"/users/{at(name)}"))["user_id"] == ZOE
        assert await listed(client, user_id=name) == [first]
        assert len(ok(await client.get("/memories", headers=acting(name)))["items"]) == 1
        for operand in (name, {"eq": name}, {"in": [name]}):
            answer = await search(client, filters={"user_id": operand}, user_id=ZOE)
            assert [hit["memory_id"] for hit in answer["results"]] == [first]


@pytest.mark.parametrize(
    "header",
    ["%", "%4", "%zz", "%ff", "%C3", "a%2Fb", "..", "%2E%2E", "*", " ", "%20a", "a%00",
     "a%E2%80%AEb", "张三".encode(), "é".encode("latin-1"), "a\tb"],
)  # fmt: skip
async def test_a_header_that_is_no_encoded_id_is_refused(
    client: AsyncClient, header: str | bytes
) -> None:
    value = header.encode() if isinstance(header, str) else header
    response = await client.get("/memories", headers={b"KeMem-User": value})

    body = problem(response, 422, "invalid_request")
    assert fields(body) == ["header.KeMem-User"]


async def test_what_is_plain_may_stand_in_the_header_as_it_is(client: AsyncClient) -> None:
    for name in ("ana", "a.b_c:d@e|f+g=h~i-j", "-ana!*'()", "a%25b", "a%20b%2C%20c"):
        ok(await client.get("/memories", headers={"KeMem-User": name}))
    await save(client, "My favourite drink is green tea.", user_id="a%b")

    mine = await client.get("/memories", headers={"KeMem-User": "a%25b"})
    assert len(ok(mine)["items"]) == 1


async def test_an_encoded_slash_reaches_no_other_path(client: AsyncClient) -> None:
    await save(client, "My favourite drink is green tea.", user_id="ana")
    await append(client, "talk", "Hello.")

    for method, path in (
        ("DELETE", "/sessions/talk%2Fmessages?confirm=true&all=true"),
        ("GET", "/users/ana%2Fprofile"),
        ("GET", "/users/ana%2fprofile"),
        ("GET", "/sessions%2Ftalk/messages"),
        ("POST", "/sessions/talk%2Fapprovals%2Fcall_1"),
        ("POST", "/sessions/talk%2Fapprovals/call_1"),
    ):
        body = problem(await client.request(method, path), 422, "invalid_request")
        assert "encoded `/`" in body["detail"]
    assert len(await every_page(client, "/sessions/talk/messages")) == 1
    # An id of a call is the model's, and may hold one.
    answer = await client.get("/sessions/talk/approvals/a%2Fb")
    problem(answer, 404, "approval_not_found")
    body = problem(await client.post("/users", json={"user_id": "al/ice"}), 422, "invalid_request")
    assert fields(body) == ["body.user_id"]
    assert "without `/`" in body["errors"][0]["detail"]


@pytest.mark.parametrize("name", [".", "..", "%2E%2E", "%FF", "%ED%A0%80", "%E2%80%8F"])
async def test_a_path_that_names_no_id_is_refused(client: AsyncClient, name: str) -> None:
    response = await client.get("/users/" + name.replace(".", "%2E"))

    assert fields(problem(response, 422, "invalid_request")) == ["path.user_id"]


async def test_lists_go_on_behind_ids_of_every_script(client: AsyncClient) -> None:
    for name in IDS:
        ok(await client.post("/agents", json={"agent_id": name, "agent_name": "A"}), 201)
        ok(await client.post("/users", json={"user_id": name, "agent_id": name}), 201)

    for path, field in (("/users", "user_id"), ("/agents", "agent_id")):
        rows = await every_page(client, path, limit=1)
        assert sorted(row[field] for row in rows) == sorted(IDS)


async def test_ids_that_look_alike_are_two_users(
    app: FastAPI, runtime: Runtime, client: AsyncClient, acme: Caller
) -> None:
    latin, cyrillic = "ana", "\u0430n\u0430"
    hers = (await save(client, "My favourite drink is green tea.", user_id=latin))["memory_id"]
    other = (await save(client, "My favourite drink is coffee.", user_id=cyrillic))["memory_id"]
    key = await make_key(runtime, acme.tenant_id, "write", user_id=cyrillic)

    assert await listed(client, user_id=latin) == [hers]
    async with client_of(app, key.key) as bound:
        assert await listed(bound) == [other]
        problem(await bound.get(f"/memories/{hers}"), 404, "memory_not_found")
        problem(await bound.get("/memories", headers=acting(latin)), 403, "acting_user_mismatch")
        ok(await bound.get("/memories", headers=acting(cyrillic)))
        refused = await bound.post("/sessions", json={"session_id": f"{latin}:s"})
        assert problem(refused, 403, "id_not_allowed")["prefix"] == key.id_prefix
        ok(await bound.post("/sessions", json={"session_id": f"{cyrillic}:s"}), 201)


async def test_a_repeated_request_of_the_same_user_has_one_effect(client: AsyncClient) -> None:
    body = {"messages": "I keep bees.", "infer": False}
    first, again, other = [
        await client.post("/memories", json=body, headers=acting(name) | {"Idempotency-Key": "k"})
        for name in (ZOE, APART, "张三")
    ]

    assert first.json() == again.json()
    assert ok(other, 201)["results"][0]["memory"]["user_id"] == "张三"
    assert len(await listed(client)) == 2


async def test_webhooks_name_them(client: AsyncClient, acme: Caller, dsn: str) -> None:
    ok(await client.post("/webhooks", json={"url": "https://kemem.invalid/hook"}), 201)
    await save(client, "My favourite drink is green tea.", user_id="张 三", session_id=None)

    [row] = await execute(
        dsn,
        "SELECT user_id, payload::text AS payload FROM webhook_deliveries WHERE tenant_id = $1",
        acme.tenant_id,
    )
    assert row["user_id"] == "张 三"
    assert "green tea" not in row["payload"]


async def test_an_export_comes_back_and_other_forms_do_not(
    app: FastAPI, runtime: Runtime, client: AsyncClient
) -> None:
    for name in ("张三", "🦊" * 64):
        ok(await client.post("/users", json={"user_id": name}), 201)
        await append(client, at(name), "Hello.", user_id=name)
        await save(client, "My favourite drink is green tea.", user_id=name)
    lines = await exported(client)
    other = await make_tenant(runtime)
    async with client_of(app, other.key) as there:
        for wrong in (APART, "al/ice", "a\nb"):
            refused = await send(there, with_row("user", lines, user_id=wrong))
            assert "row.user_id" in str(fields(problem(refused, 422, "invalid_import")))
        await imported(there, lines)
        assert len(await listed(there, user_id="张三")) == 1
        assert len(await every_page(there, f"/sessions/{at('张三')}/messages")) == 1


def test_no_name_of_a_caller_is_published_with_the_shape_of_our_own_ids() -> None:
    """Of `run_id` that of verdicts names a run of extraction, which is ours."""
    names = {"user_id", "agent_id", "project_id", "session_id", "run_id", "thread_id", "scope_id"}
    published = document()
    parameters = {
        (path, one["name"]): one["schema"]
        for path, operations in published["paths"].items()
        for operation in operations.values()
        for one in operation.get("parameters", ())
    }
    fields = {
        (name, field): shape
        for name, schema in published["components"]["schemas"].items()
        for field, shape in schema.get("properties", {}).items()
    }
    shapes = {key: shape for key, shape in (parameters | fields).items() if key[1] in names}

    ours = [key for key, shape in shapes.items() if json.dumps(ID_PATTERN) in json.dumps(shape)]

    assert len(shapes) > 100
    assert ours == [("/v1/memories/decisions", "run_id")]
