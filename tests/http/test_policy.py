"""Every operation of the published document, against everybody who must not come in.

The walk reads the document and not the router, so that a route cannot be forgotten: one
without an entry in `OPERATIONS` of `tests.support.operations` fails the first test below.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.identity.tenants.access import plain_prefix
from app.runtime import Runtime
from tests.support.api import execute
from tests.support.document import document
from tests.support.operations import FURTHER, OPERATIONS, make
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant, tenants
from tests.support.world import World, build_world, rows_of

# Operations anyone may call. Adding one here is a decision about security.
OPEN_TO_ANYONE = {"GET /livez", "GET /readyz", "GET /metrics"}

SCOPES = ("read", "write", "admin", "operator")


DOCUMENT = document()
DOCUMENTED = {
    f"{method.upper()} {path}": operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}
WITH_BODY = sorted(name for name, one in DOCUMENTED.items() if "requestBody" in one)
GUARDED = sorted(DOCUMENTED.keys() - OPEN_TO_ANYONE)
WAYS_IN = {
    name: call
    for name, call in (OPERATIONS | FURTHER).items()
    if call.scope != "operator"
    and re.search(r"\{\w+\}", name + json.dumps([call.body, call.query]))
}


def blurred(response: Response, ids: dict[str, str]) -> tuple[int, Any]:
    """An answer without what may differ: the ids asked for, new ids, the request, the time,
    and how often something was found, which is counted behind the answer.
    """
    text = re.sub(r'"(use_count|last_used_at)":[^,}]+', r'"\1":0', response.text)
    for name, value in sorted(ids.items(), key=lambda one: -len(one[1])):
        text = text.replace(plain_prefix(f"{value}:"), f"<{name}>:").replace(value, f"<{name}>")
    text = re.sub(r"\b([a-z]{3})_[0-9a-f]{32}(_\d+)?\b", r"<new \1>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", text)
    text = re.sub(r"kem_\w+|(?<=\")[0-9a-f]{16}(?=\")", "<key>", text)
    text = re.sub(r'"duration_ms":\d+', '"duration_ms":0', text)
    body = json.loads(text) if text else None
    if isinstance(body, dict):
        body.pop("request_id", None)
    return response.status_code, body


def never_seen(ids: dict[str, str]) -> dict[str, str]:
    """Ids nobody has used before, not even an earlier test."""
    return {name: f"missing-{uuid4().hex}" for name in ids}


@pytest.fixture(scope="module")
async def world(app: FastAPI, runtime: Runtime) -> World:
    """A tenant with a row of every kind; nobody here may change any of them."""
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as client:
        return await build_world(runtime, client, owner)


@pytest.fixture(scope="module")
async def keys(runtime: Runtime, world: World, dsn: str) -> dict[str, str | None]:
    """Keys of `world` that nobody may use any more, and strings that never were one."""
    expired = await make_key(
        runtime, world.owner.tenant_id, *SCOPES, expires_at=datetime.now(UTC) + timedelta(hours=1)
    )
    statement = "UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE key_id = $1"
    await execute(dsn, statement, expired.key_id)
    revoked = await make_key(runtime, world.owner.tenant_id, *SCOPES)
    await tenants(runtime).revoke_key(world.owner.tenant_id, revoked.key_id)
    known = world.owner.key
    return {
        "missing_key": None,
        "unknown_key": known[:-1] + ("0" if known[-1] != "0" else "1"),
        "expired_key": expired.key,
        "revoked_key": revoked.key,
    }


@pytest.fixture(scope="module")
async def by_scope(runtime: Runtime, app: FastAPI) -> AsyncIterator[dict[str, AsyncClient]]:
    """A client for each scope, in a tenant without rows."""
    empty = await make_tenant(runtime)
    async with AsyncExitStack() as stack:
        clients = {}
        for scope in SCOPES:
            caller = await make_key(runtime, empty.tenant_id, scope)
            clients[scope] = await stack.enter_async_context(client_of(app, caller.key))
        yield clients


async def settled(runtime: Runtime, app: FastAPI, caller: Caller, **restriction: str) -> str:
    """Rows of the caller's own, which `FURTHER` needs, and the key to try with."""
    async with client_of(app, caller.key) as admin:
        for path, body in (
            ("/agents", {"agent_id": "rival", "agent_name": "Rival"}),
            ("/users", {"user_id": "own-user", "agent_id": "rival"}),
            ("/projects", {"project_id": "own-project", "project_name": "P"}),
            ("/sessions", {"session_id": "own-session", "user_id": "own-user"}),
        ):
            response = await admin.post(path, json=body)
            assert response.status_code in {201, 409}, response.text
    if not restriction:
        return caller.key
    return (await make_key(runtime, caller.tenant_id, "write", **restriction)).key


async def two_keys(runtime: Runtime, app: FastAPI) -> list[str]:
    return [await settled(runtime, app, await make_tenant(runtime)) for _ in range(2)]


class TestDocument:
    def test_every_operation_has_an_entry(self) -> None:
        assert len(DOCUMENTED) > 40
        assert OPERATIONS.keys() == DOCUMENTED.keys() - OPEN_TO_ANYONE

    def test_every_operation_names_its_security_scheme(self) -> None:
        guarded = [{"key": []}, {"key": [], "acting_user": []}]
        keyless = {name for name, one in DOCUMENTED.items() if one.get("security") != guarded}
        assert keyless == OPEN_TO_ANYONE

    def test_every_operation_says_what_it_does(self) -> None:
        for name, operation in DOCUMENTED.items():
            assert len(operation["tags"]) == 1, name
            assert operation["summary"], name
            assert operation["description"].endswith((".", "; no ids and no content.")), name

    def test_every_operation_lists_its_errors(self) -> None:
        for name in GUARDED:
            responses = DOCUMENTED[name]["responses"]
            for status, code in (
                ("401", "missing_key"),
                ("403", "insufficient_scope"),
                ("422", "invalid_request"),
                ("503", "database_unavailable"),
            ):
                assert f"`{code}`" in responses[status]["description"], name
            for status, response in responses.items():
                if int(status) >= 400:
                    [(media_type, content)] = response["content"].items()
                    assert media_type == "application/problem+json", name
                    assert content["schema"] == {"$ref": "#/components/schemas/Problem"}, name

    def test_every_operation_on_one_row_says_that_it_may_be_missing(self) -> None:
        for name in GUARDED:
            if "{" in name:
                missing = DOCUMENTED[name]["responses"]["404"]["description"]
                assert "_not_found`" in missing, name

    def test_tags_stand_in_the_order_that_a_newcomer_needs(self) -> None:
        tags = [tag["name"] for tag in DOCUMENT["tags"]]

        assert tags == [
            "memories", "sessions", "messages", "context", "users", "agents", "profiles",
            "projects", "extraction", "jobs", "graph", "blocks", "folders", "checkpoints", "tools",
            "store", "feedback", "forgetting", "exports", "webhooks", "statistics", "usage", "keys",
            "tenants", "operations",
        ]  # fmt: skip
        assert {one["tags"][0] for one in DOCUMENTED.values()} == set(tags)


class TestExamples:
    @for_each("name", WITH_BODY)
    async def test_every_body_has_an_example_that_is_valid(
        self, by_scope: dict[str, AsyncClient], world: World, name: str
    ) -> None:
        contents = DOCUMENTED[name]["requestBody"]["content"]
        if "multipart/form-data" in contents:
            return  # A file has no example in the document.
        # What follows the first is the same body as bytes. Of lines each has the schema.
        [content, *_] = contents.values()
        described = content["schema"].get("contentSchema", content["schema"])
        # A body that may be left out is one of two.
        [name_of, *_] = described.get("anyOf", [described])
        schema = DOCUMENT["components"]["schemas"][name_of["$ref"].split("/")[-1]]
        assert schema["examples"]

        for example in schema["examples"]:
            call = replace(OPERATIONS[name], body=example)
            response = await make(by_scope[call.scope], name, call, never_seen(world.ids))

            if response.status_code == 422:
                assert response.json()["code"] != "invalid_request"


class TestKeys:
    @for_each("name", GUARDED)
    async def test_no_unknown_expired_or_revoked_key_comes_in(
        self, app: FastAPI, world: World, keys: dict[str, str | None], name: str
    ) -> None:
        for code, key in keys.items():
            async with client_of(app, key) as client:
                response = await make(client, name, OPERATIONS[name], world.ids)

            assert (response.status_code, response.json()["code"]) == (401, code)
            assert response.headers["www-authenticate"] == "Bearer"
            assert response.headers["content-type"] == "application/problem+json"

    @for_each("name", GUARDED)
    async def test_a_key_needs_the_scope_of_the_operation(
        self, by_scope: dict[str, AsyncClient], world: World, name: str
    ) -> None:
        call = OPERATIONS[name]
        refused = set()
        for scope, client in by_scope.items():
            response = await make(client, name, call, never_seen(world.ids))
            if response.status_code == 403:
                refused.add(scope)
                assert response.json()["code"] == "insufficient_scope"
                assert response.json()["required_scope"] == call.scope

        above = {"read": {"operator"}, "write": {"read", "operator"}}
        above |= {"admin": {"read", "write", "operator"}, "operator": {"read", "write", "admin"}}
        assert refused == above[call.scope]

    def test_whoever_may_only_read_changes_nothing(self) -> None:
        readers = {name for name, call in OPERATIONS.items() if call.scope == "read"}
        asking = {
            "POST /v1/memories/search",
            "POST /v1/memories/validate",
            "POST /v1/messages/search",
            "POST /v1/passages/search",
            "POST /v1/sessions/{session_id}/context",
            "POST /v1/sessions/{session_id}/saver/content/read",
            "POST /v1/sessions/{session_id}/window/trim",
            # What changes an item asks for `write`: tests/store.
            "POST /v1/store/batch",
            # Each tool asks for its own scope: tests/tools.
            "POST /v1/tools/{name}/call",
        }

        assert {name for name in readers if not name.startswith("GET ")} == asking

    @for_each("name", sorted(OPEN_TO_ANYONE))
    async def test_probes_need_no_key(self, app: FastAPI, name: str) -> None:
        async with client_of(app, None) as client:
            # Metrics only on this machine, where they have no token.
            response = await client.get(f"http://127.0.0.1{name.split(' ')[1]}")

        assert response.status_code == 200


class TestAnotherTenant:
    async def test_its_ids_are_answered_like_missing_ones(
        self, app: FastAPI, runtime: Runtime, dsn: str, world: World
    ) -> None:
        """Two tenants ask, one with the ids of `world` and one with ids that nobody has.

        Both are replaced once an operation has made something, which the next one must not find.
        """
        two: list[str] = []
        before = await rows_of(dsn, world.owner.tenant_id)
        for name, call in sorted(WAYS_IN.items()):
            missing = "{" in name and not call.creates
            two = two or await two_keys(runtime, app)
            answers = []
            for key, ids in zip(two, (world.ids, never_seen(world.ids)), strict=True):
                async with client_of(app, key) as client:
                    answers.append(blurred(await make(client, name, call, ids), ids))

            assert answers[0] == answers[1], name
            if name in MADE_ON_FIRST_USE:
                # Of no session that they may see: whose a new one would be is not said.
                assert (answers[0][0], answers[0][1]["code"]) == (422, "user_required"), name
            elif missing:
                assert answers[0][0] == 404, name
                assert answers[0][1]["code"].endswith("_not_found"), name
            if answers[0][0] < 400 and not name.startswith("GET "):
                two = []
        # Whatever changes a row changes its version or its time, so that nothing changes it back.
        assert await rows_of(dsn, world.owner.tenant_id) == before


RESTRICTIONS = {
    "another agent": {"agent_id": "rival"},
    "another user": {"user_id": "own-user"},
    "another pair": {"agent_id": "rival", "user_id": "own-user"},
}

MADE_ON_FIRST_USE = {"POST /v1/sessions/{session_id}/messages"}

# What a key restricted to a user may see beyond its own rows (memories/visibility_sql.py):
# agents, and what is known to all users of an agent.
SHARED_WITH_USERS = {
    "GET /v1/agents/{agent_id}",
    "GET /v1/users",
    "GET /v1/agents/{agent_id}/blocks",
    "GET /v1/memories/{agent_memory_id}",
    "GET /v1/memories/{agent_memory_id}/history",
    "PATCH /v1/memories/{agent_memory_id}",
    "DELETE /v1/memories/{agent_memory_id}",
    "POST /v1/memories/{agent_memory_id}/supersede",
    "POST /v1/memories/{agent_memory_id}/restore",
    "GET /v1/memories/{agent_memory_id}/feedback",
    "POST /v1/memories/{agent_memory_id}/feedback",
    "GET /v1/memories (agent)",
    "POST /v1/memories/search (agent)",
    "GET /v1/tools (agent)",
    "GET /v1/folders (agent)",
    "POST /v1/passages/search (agent)",
}

# Whoever may read a memory may say what it is worth.
RATING = {"POST /v1/memories/{agent_memory_id}/feedback"}


@pytest.fixture(scope="module")
async def bound(app: FastAPI, runtime: Runtime, world: World) -> dict[str, str]:
    """Keys of `world` that are restricted to somebody else's rows."""
    return {
        name: await settled(runtime, app, world.owner, **restriction)
        for name, restriction in RESTRICTIONS.items()
    }


class TestRestrictedKeys:
    """One tenant: ana is at home with helper; the keys are rival's, and those of its user."""

    @pytest.mark.parametrize("who", RESTRICTIONS)
    async def test_rows_of_others_are_answered_like_missing_ones(
        self, app: FastAPI, dsn: str, world: World, bound: dict[str, str], who: str
    ) -> None:
        before = await self.settled_rows_of_others(dsn, world)
        async with client_of(app, bound[who]) as client:
            for name, call in sorted(WAYS_IN.items()):
                ids = never_seen(world.ids)
                theirs = await make(client, name, call, world.ids)
                missing = await make(client, name, call, ids)

                self.hold_against_policy(
                    who, name, theirs, blurred(theirs, world.ids) == blurred(missing, ids)
                )
        assert not before - await self.rows_of_others(dsn, world)

    async def settled_rows_of_others(self, dsn: str, world: World) -> set[tuple[str, str]]:
        """Once nothing is written any more; what other tests did is noted in the background."""
        rows = await self.rows_of_others(dsn, world)
        while (now := await self.rows_of_others(dsn, world)) != rows:
            rows = now
        return rows

    @staticmethod
    async def rows_of_others(dsn: str, world: World) -> set[tuple[str, str]]:
        rows = await rows_of(dsn, world.owner.tenant_id)
        own = ('"own-user"', '"own-session"')
        return {(table, row) for table, row in rows if not any(name in row for name in own)}

    @staticmethod
    def hold_against_policy(who: str, name: str, theirs: Response, as_missing: bool) -> None:
        """Check the answer about another's row; `as_missing`: a missing one is answered so too."""
        if who == "another user" and name in SHARED_WITH_USERS:
            changing = not name.startswith("GET ") and "search" not in name
            allowed = 201 if name in RATING else 200
            expected = 403 if changing and name not in RATING else allowed
            assert theirs.status_code == expected, name
        elif WAYS_IN[name].creates or name in MADE_ON_FIRST_USE:
            # An id cannot be made twice in a tenant; that it is taken is all that is said, and
            # not even that where a key may not choose it.
            assert theirs.status_code in {403, 404, 409, 422}, name
            assert theirs.json()["code"] in {
                "insufficient_scope", "key_restricted", "id_taken", "id_not_allowed",
                "user_not_found", "agent_not_found", "session_not_found", "user_required",
            }, name  # fmt: skip
        else:
            # The same status and the same body: that something is there is not said either.
            assert as_missing, name
            if "{" in name:
                # What takes an admin's key, and some changes, are refused for that alone.
                reads = name.startswith("GET ") and WAYS_IN[name].scope == "read"
                assert theirs.status_code in ({404} if reads else {403, 404}), name

    async def test_a_key_of_a_user_sees_no_block_of_agents_it_has_nothing_to_do_with(
        self, app: FastAPI, world: World, bound: dict[str, str]
    ) -> None:
        async with client_of(app, bound["another user"]) as client:
            listed = await client.get("/agents/helper/blocks")

        assert listed.status_code == 200
        assert listed.json()["items"] == []

    @pytest.mark.parametrize("who", RESTRICTIONS)
    async def test_lists_show_nothing_of_others(
        self, app: FastAPI, world: World, bound: dict[str, str], who: str
    ) -> None:
        seen = ""
        async with client_of(app, bound[who]) as client:
            for path in (
                "/users", "/sessions", "/projects", "/memories", "/memories/decisions", "/jobs",
                "/extractions", "/blocks", "/saver/checkpoints",
                "/memories?known_at=2090-01-01T00:00:00Z",
            ):  # fmt: skip
                response = await client.get(path)
                assert response.status_code == 200
                seen += response.text

        for name in (
            "user_id", "session_id", "project_id", "memory_id", "session_memory_id", "job_id",
            "extraction_id", "block_id", "checkpoint_id",
        ):  # fmt: skip
            assert f'"{world.ids[name]}"' not in seen
