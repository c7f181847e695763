"""Every list that pages, and its cursors: another list refuses them."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from httpx import AsyncClient

from app.platform.values.pagination import encode, note_list
from app.runtime import Runtime
from tests.support.api import ok, problem
from tests.support.document import document
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

BY_NUMBER = {
    "/v1/blocks/{block_id}/history": "block_history",
    "/v1/folders/{folder_id}/files/{file_id}/passages": "file_passages",
    "/v1/graph/relations/{relation_id}/history": "relation_history",
    "/v1/sessions/{session_id}/messages": "messages",
}
BY_TIME = {
    "/v1/agents": "agents",
    "/v1/agents/{agent_id}/blocks": "agent_blocks",
    "/v1/blocks": "blocks",
    "/v1/erasures": "receipts",
    "/v1/evaluations": "evaluations",
    "/v1/extractions": "extraction_runs",
    "/v1/folders": "folders",
    "/v1/folders/{folder_id}/files": "files",
    "/v1/folders/{folder_id}/passages": "passages",
    "/v1/graph/changes": "merges",
    "/v1/graph/entities": "entities",
    "/v1/graph/entities/{entity_id}/memories": "entity_memories",
    "/v1/graph/relations": "relations",
    "/v1/jobs": "jobs",
    "/v1/keys": "keys",
    "/v1/memories": "memories",
    "/v1/memories/decisions": "decisions",
    "/v1/memories/{memory_id}/feedback": "feedback",
    "/v1/memories/{memory_id}/history": "memory_history",
    "/v1/projects": "projects",
    "/v1/projects/{project_id}/members": "project_members",
    "/v1/projects/{project_id}/memories": "project_items",
    "/v1/projects/{project_id}/profile/history": "profile_history",
    "/v1/sessions": "sessions",
    "/v1/sessions/{session_id}/approvals": "approvals",
    "/v1/sessions/{session_id}/checkpoints": "checkpoints",
    "/v1/sessions/{session_id}/injections": "injections",
    "/v1/sessions/{session_id}/state/snapshots": "snapshots",
    "/v1/sessions/{session_id}/summaries": "summaries",
    "/v1/tenants": "tenants",
    "/v1/tenants/{tenant_id}/keys": "keys",
    "/v1/users": "users",
    "/v1/users/{user_id}/profile/history": "profile_history",
    "/v1/webhooks": "webhooks",
    "/v1/webhooks/{webhook_id}/deliveries": "deliveries",
}
OF_GRAPHS = {"/v1/saver/checkpoints", "/v1/sessions/{session_id}/saver/checkpoints"}
# What two routes show is one list.
SHARED = {"keys", "profile_history"}

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_every_list_that_pages_is_in_the_table() -> None:
    paging = {
        path
        for path, operations in document()["paths"].items()
        if any(one["name"] == "cursor" for one in operations.get("get", {}).get("parameters", ()))
    }
    assert paging == BY_TIME.keys() | BY_NUMBER.keys() | OF_GRAPHS
    names = [*BY_TIME.values(), *BY_NUMBER.values()]
    assert len(names) == len(set(names)) + len(SHARED)


async def test_a_list_takes_its_own_cursors_and_no_others(
    client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    """Of others three are tried: of the next list of its kind, of the other kind, of graphs."""
    saver = base64.urlsafe_b64encode(json.dumps(["saver_checkpoints", "c", "s", ""]).encode())
    admin = await make_key(runtime, acme.tenant_id, "read", "write", "admin")
    operator = await make_key(runtime, acme.tenant_id, "operator")
    async with client_of(app, admin.key) as tenant, client_of(app, operator.key) as whole:
        for path, own in (BY_TIME | BY_NUMBER | dict.fromkeys(OF_GRAPHS, "saver")).items():
            caller = whole if path.startswith("/v1/tenants") else tenant
            place = 1 if path in BY_NUMBER else NOW
            alike, unlike = (BY_NUMBER, BY_TIME) if path in BY_NUMBER else (BY_TIME, BY_NUMBER)
            following = next(name for name in _after(path, alike) if name != own)
            shown = path.replace("{", "").replace("}", "")
            note_list("", acme.tenant_id, "", shown)
            names = {own, following, next(iter(unlike.values()))} - {"saver"}
            cursors = {name: encode(name, place, "x") for name in names}
            cursors["saver"] = saver.decode()
            url = shown.removeprefix("/v1")
            for name, cursor in cursors.items():
                answer = await caller.get(url, params={"cursor": cursor})
                if name != own:
                    problem(answer, 422, "invalid_cursor")
                    continue
                assert answer.status_code in {200, 404}, (path, answer.text)


def _after(path: str, lists: dict[str, str]) -> list[str]:
    """Names of the lists that follow, from the start again behind the last."""
    paths = list(lists)
    place = paths.index(path) + 1 if path in lists else 0
    return [lists[one] for one in paths[place:] + paths[:place]]


async def test_cursor_belongs_to_the_tenant_the_path_and_the_filters(
    client: AsyncClient, app: FastAPI, other: Caller
) -> None:
    for number in range(3):
        for agent_id in ("one", "two"):
            body = {"user_id": f"u{number}-{agent_id}", "agent_id": agent_id}
            ok(await client.post("/users", json=body), 201)
            ok(await client.post(f"/sessions/{agent_id}/messages", json=said(number)), 201)
    users = {"agent_id": "one", "limit": 1}
    cursor = ok(await client.get("/users", params=users))["next_cursor"]
    of_messages = ok(await client.get("/sessions/one/messages", params={"limit": 1}))["next_cursor"]

    goes_on = users | {"cursor": cursor, "limit": 5}
    assert len(ok(await client.get("/users", params=goes_on))["items"]) == 2
    for changed in ({"agent_id": "two"}, {"agent_id": None}):
        kept = {name: value for name, value in (goes_on | changed).items() if value is not None}
        problem(await client.get("/users", params=kept), 422, "invalid_cursor")
    here, there = "/sessions/one/messages", "/sessions/two/messages"
    assert ok(await client.get(here, params={"cursor": of_messages}))["items"]
    refused = problem(
        await client.get(there, params={"cursor": of_messages}), 422, "invalid_cursor"
    )
    assert refused["errors"][0]["location"] == ["query", "cursor"]
    async with client_of(app, other.key) as neighbour:
        problem(await neighbour.get("/users", params=goes_on), 422, "invalid_cursor")


def said(number: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": f"Number {number}."}], "user_id": "ana"}
