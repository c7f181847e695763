"""Query parameters that a route does not have, and the version that a PATCH answers."""

import re

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import fields, ok, problem
from tests.support.document import document
from tests.support.operations import OPERATIONS, make
from tests.support.service import client_of
from tests.support.tenants import make_key, make_tenant
from tests.support.world import World, build_world

WITHOUT_KEY = {"GET /livez", "GET /readyz", "GET /metrics"}


@pytest.fixture(scope="module")
async def world(app: FastAPI, runtime: Runtime) -> World:
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as client:
        return await build_world(runtime, client, owner)


async def test_no_route_takes_a_parameter_that_it_does_not_have(
    app: FastAPI, runtime: Runtime, world: World
) -> None:
    scopes = ("read", "write", "admin", "operator")
    key = await make_key(runtime, world.owner.tenant_id, *scopes)
    async with client_of(app, key.key) as client:
        for name in sorted(OPERATIONS.keys() - WITHOUT_KEY):
            method, path = name.split(" ")[:2]
            path = re.sub(r"\{\w+\}", "x", path.removeprefix("/v1"))
            answer = await client.request(method, path, params={"forcee": "true"})
            refused = problem(answer, 422, "invalid_request")
            assert fields(refused) == ["query.forcee"], name


async def test_a_parameter_of_the_body_is_not_one_of_the_query(client: AsyncClient) -> None:
    ok(await client.post("/sessions", json={"session_id": "s", "user_id": "ana"}), 201)

    refused = problem(await client.post("/sessions/s/compact?force=true"), 422, "invalid_request")

    assert fields(refused) == ["query.force"]


async def test_who_may_not_call_is_told_nothing_of_parameters(
    app: FastAPI, client: AsyncClient
) -> None:
    async with client_of(app, "kem_none") as stranger:
        assert (await stranger.get("/users?nonsense=1")).status_code == 401
    assert (await client.get("/docs?theme=dark")).status_code in {200, 404}


async def test_every_patch_of_what_has_a_version_answers_its_etag(
    app: FastAPI, runtime: Runtime
) -> None:
    owner = await make_tenant(runtime)
    scopes = ("read", "write", "admin", "operator")
    key = await make_key(runtime, owner.tenant_id, *scopes)
    seen = 0
    async with client_of(app, key.key) as client:
        world = await build_world(runtime, client, owner)
        patches = [one for one in OPERATIONS.items() if one[0].startswith("PATCH ")]
        # What disables somebody comes last.
        for name, call in sorted(patches, key=lambda one: "disabled" in str(one[1].body)):
            answer = await make(client, name, call, world.ids)
            assert answer.status_code == 200, (name, answer.text)
            version = answer.json().get("version")
            assert answer.headers.get("ETag") == (None if version is None else f'"{version}"'), name
            published = document()["paths"][name.split(" ")[1]]["patch"]["responses"]["200"]
            assert ("ETag" in published.get("headers", {})) == (version is not None), name
            seen += version is not None
        first = await client.patch("/users/ana", json={"user_name": "Anna"})
        tag = {"If-Match": first.headers["ETag"]}
        ok(await client.patch("/users/ana", json={"user_name": "Ana"}, headers=tag))
        again = await client.patch("/users/ana", json={"user_name": "Ann"}, headers=tag)
        problem(again, 409, "version_conflict")
    assert seen > 8
