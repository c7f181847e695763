"""A check before saving: whatever bars a save bars the check, with the same answer."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import counts, ok, problem
from tests.support.rows import for_each
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key

TEA = "She drinks green tea."
IN_PROJECT = {"scope": "project", "project_id": "p1"}


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def town(client: AsyncClient) -> None:
    """Ana writes in a project that Bob reads, Cid is in none, Dan is disabled."""
    ok(await client.post("/projects", json={"project_id": "p1", "project_name": "P"}), 201)
    for user_id, role in (("ana", "editor"), ("bob", "viewer"), ("cid", None), ("dan", None)):
        ok(await client.post("/users", json={"user_id": user_id}), 201)
        if role:
            ok(await client.put(f"/projects/p1/members/{user_id}", json={"role": role}))
    ok(await client.patch("/users/dan", json={"status": "disabled"}))
    for agent_id in ("paused", "away"):
        ok(await client.post("/agents", json={"agent_id": agent_id, "agent_name": "A"}), 201)
    ok(await client.patch("/agents/paused", json={"memory_enabled": False}))
    ok(await client.post("/sessions", json={"session_id": "s1", "user_id": "cid"}), 201)


async def both(client: AsyncClient, **given: Any) -> list[tuple[int, Any]]:
    """How the check and the save answer."""
    body = {"messages": TEA, "user_id": "ana", "infer": False} | given
    answers = []
    for path in ("/memories/validate", "/memories"):
        response = await client.post(path, json=body)
        document = response.json()
        answers.append((response.status_code, document.get("code"), document.get("detail")))
    return answers


@for_each(
    ("given", "status", "code"),
    [
        ({"user_id": "bob"} | IN_PROJECT, 403, "read_only_member"),
        ({"user_id": "cid"} | IN_PROJECT, 404, "project_not_found"),
        ({"scope": "project", "project_id": "p2"}, 404, "project_not_found"),
        ({"user_id": "cid", "project_id": "p1"}, 404, "project_not_found"),
        ({"user_id": "dan"}, 409, "disabled"),
        ({"agent_id": "paused"}, 409, "memory_paused"),
        ({"session_id": "s1"}, 409, "session_mismatch"),
    ],
)
async def test_reasons_against_a_save_refuse_the_check_too(
    client: AsyncClient, dsn: str, acme: Caller, given: dict[str, Any], status: int, code: str
) -> None:
    before = await counts(dsn, acme.tenant_id)

    checked, saved = await both(client, **given)

    assert checked == saved
    assert checked[:2] == (status, code)
    assert await counts(dsn, acme.tenant_id) == before


async def test_a_project_that_an_agent_does_not_see_is_none(
    app, client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    key = await make_key(runtime, acme.tenant_id, "write", agent_id="away")

    async with client_of(app, key.key) as bound:
        checked, saved = await both(bound, user_id=None, **IN_PROJECT)

    assert checked == saved
    assert checked[:2] == (404, "project_not_found")


async def test_valid_statement_makes_no_user(client: AsyncClient, dsn: str, acme: Caller) -> None:
    before = await counts(dsn, acme.tenant_id)

    for given in (IN_PROJECT, {"user_id": "new", "agent_id": "new"}, {"session_id": "new"}):
        body = {"messages": TEA, "user_id": "ana"} | given
        assert ok(await client.post("/memories/validate", json=body))["valid"]

    assert await counts(dsn, acme.tenant_id) == before


async def test_gate_refusals_are_reported_first(client: AsyncClient) -> None:
    """As a save does, which asks the gate first."""
    body = {"messages": "Tea", "user_id": "bob", "infer": False} | IN_PROJECT

    answer = ok(await client.post("/memories/validate", json=body))

    assert [one["code"] for one in answer["results"][0]["reasons"]] == ["too_short"]


async def test_what_would_be_new_has_no_id_yet(client: AsyncClient) -> None:
    body = {"messages": TEA, "user_id": "ana", "infer": False}

    new = ok(await client.post("/memories/validate", json=body))["results"][0]
    stored = ok(await client.post("/memories", json=body), 201)["results"][0]
    known = ok(await client.post("/memories/validate", json=body))["results"][0]

    assert (new["event"], new["memory_id"]) == ("ADD", None)
    assert (known["event"], known["memory_id"]) == ("NONE", stored["memory_id"])


async def test_with_infer_it_answers_what_would_be_read(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    body = {"messages": "I live in Munich. Can you help me?", "user_id": "ana"}
    before = await counts(dsn, acme.tenant_id)

    told = ok(await client.post("/memories/validate", json=body))
    after = await counts(dsn, acme.tenant_id)
    saved = ok(await client.post("/memories", json=body), 201)

    assert after == before
    assert told["valid"]
    assert [one["content"] for one in told["results"]] == [
        one["content"] for one in saved["results"]
    ]
    assert {one["memory_id"] for one in told["results"]} == {None}


class TestDeployments:
    @pytest.fixture
    async def manual(self, dsn: str, acme: Caller) -> AsyncIterator[AsyncClient]:
        async with service(dsn, auto_create=False) as app, client_of(app, acme.key) as opened:
            yield opened

    @pytest.fixture
    async def off(self, dsn: str, acme: Caller) -> AsyncIterator[AsyncClient]:
        async with service(dsn, enabled=False) as app, client_of(app, acme.key) as opened:
            yield opened

    async def test_unknown_user_is_refused_without_auto_create(self, manual: AsyncClient) -> None:
        checked, saved = await both(manual, user_id="new")

        assert checked == saved
        assert checked[:2] == (404, "user_not_found")

    async def test_check_is_refused_while_memory_is_off(self, off: AsyncClient) -> None:
        body = {"messages": TEA, "user_id": "ana"}

        problem(await off.post("/memories/validate", json=body), 503, "memory_disabled")
