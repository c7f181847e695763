"""A user who is written for before anybody made them: the same who saves a memory may begin so."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient, Response

from app.runtime import Runtime
from tests.profiles.profiles_support import profile, values
from tests.support.api import counts, ok, problem
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key

NEW = {"If-Match": "0"}
PILOT = {"attributes": {"profession": "pilot"}}
DOCUMENT = {
    "user": {"workContext": {"summary": "Pilot."}},
    "facts": [{"id": "fact_1", "content": "She drinks green tea.", "confidence": 0.9}],
}


async def patch(client: AsyncClient, user_id: str = "ana") -> Response:
    return await client.patch(f"/users/{user_id}/profile", json=PILOT, headers=NEW)


async def put(client: AsyncClient, user_id: str = "ana") -> Response:
    return await client.put(f"/users/{user_id}/profile", json=PILOT, headers=NEW)


async def take_in(client: AsyncClient, user_id: str = "ana", **params: Any) -> Response:
    path = f"/users/{user_id}/memory-document"
    return await client.post(path, json=DOCUMENT, params=params)


async def take_in_nothing(client: AsyncClient, user_id: str = "ana") -> Response:
    """Nothing but the user is there to be made."""
    return await client.post(f"/users/{user_id}/memory-document", json={})


async def remember(client: AsyncClient, user_id: str = "ana") -> Response:
    """What the others are held against."""
    body = {"messages": "She drinks green tea.", "user_id": user_id, "infer": False}
    return await client.post("/memories", json=body)


WRITING = [patch, put, take_in, take_in_nothing]


@pytest.fixture
async def manual(dsn: str, acme: Caller) -> AsyncIterator[AsyncClient]:
    """A deployment in which users are made by hand."""
    async with service(dsn, auto_create=False) as app, client_of(app, acme.key) as opened:
        yield opened


@pytest.mark.parametrize("write", WRITING)
class TestWriting:
    async def test_a_new_user_is_made_at_home_with_the_default_agent(self, client, write) -> None:
        ok(await write(client))

        assert ok(await client.get("/users/ana"))["agent_id"] == "default"

    async def test_the_agent_of_a_key_is_the_new_home(
        self, app, client, runtime: Runtime, acme: Caller, write
    ) -> None:
        key = await make_key(runtime, acme.tenant_id, "write", agent_id="helper")
        ok(await client.post("/agents", json={"agent_id": "helper", "agent_name": "H"}), 201)

        async with client_of(app, key.key) as bound:
            ok(await write(bound, "helper~ana"))

        assert ok(await client.get("/users/helper~ana"))["agent_id"] == "helper"

    async def test_a_user_makes_no_other_user(self, app, runtime, acme, client, write) -> None:
        key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")

        async with client_of(app, key.key) as bound:
            problem(await write(bound), 404, "user_not_found")
            ok(await write(bound, "ben"))

        problem(await client.get("/users/ana"), 404, "user_not_found")

    async def test_reasons_against_a_memory_refuse_a_profile_too(
        self, app, client, runtime, acme, dsn, write
    ) -> None:
        """A user of another agent's, and an agent that is disabled or paused."""
        for agent_id, change in (
            ("away", {}), ("off", {"status": "disabled"}), ("paused", {"memory_enabled": False})
        ):  # fmt: skip
            body = {"agent_id": agent_id, "agent_name": agent_id}
            ok(await client.post("/agents", json=body), 201)
            ok(await client.patch(f"/agents/{agent_id}", json=change))
        ok(await client.post("/users", json={"user_id": "eva", "agent_id": "away"}), 201)
        before = await counts(dsn, acme.tenant_id)

        for agent_id, user_id, status, code in (
            ("off", "off~ana", 409, "disabled"),
            ("paused", "paused~ana", 409, "memory_paused"),
            ("off", "eva", 403, "id_not_allowed"),
        ):
            key = await make_key(runtime, acme.tenant_id, "write", agent_id=agent_id)
            before["api_keys"] += 1
            async with client_of(app, key.key) as bound:
                problem(await remember(bound, user_id), status, code)
                problem(await write(bound, user_id), status, code)

        assert await counts(dsn, acme.tenant_id) == before

    async def test_unknown_user_is_refused_without_auto_create(self, manual, client, write) -> None:
        problem(await write(manual), 404, "user_not_found")

        problem(await client.get("/users/ana"), 404, "user_not_found")


async def test_first_write_is_kept(client) -> None:
    ok(await put(client))
    ok(await take_in(client, "ben"))

    assert values(await profile(client)) == {"profession": "pilot"}
    assert values(await profile(client, "users/ben"), "sections") == {"work_context": "Pilot."}
    assert [
        one["content"] for one in ok(await client.get("/users/ben/memory-document"))["facts"]
    ] == ["She drinks green tea."]


async def test_stale_version_makes_no_user(client) -> None:
    response = await client.put("/users/ana/profile", json=PILOT, headers={"If-Match": "3"})

    problem(response, 409, "version_conflict")
    problem(await client.get("/users/ana"), 404, "user_not_found")


async def test_dry_run_makes_no_user_and_checks_whether_it_could(
    client, manual, dsn: str, acme: Caller
) -> None:
    before = await counts(dsn, acme.tenant_id)

    assert ok(await take_in(client, dry_run=True))["counts"] == {"ADD": 1}
    problem(await take_in(manual, dry_run=True), 404, "user_not_found")

    assert await counts(dsn, acme.tenant_id) == before


@pytest.mark.parametrize("path", ["profile", "profile/history", "memory-document"])
async def test_reading_makes_no_user(client, path: str) -> None:
    problem(await client.get(f"/users/ana/{path}"), 404, "user_not_found")

    problem(await client.post("/users/ana/profile/derive"), 404, "user_not_found")
