"""One effect for one `Idempotency-Key`, on every POST that takes it, also when two race."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.platform.database.roles import OWNER
from app.runtime import Runtime
from tests.support.api import append, ok, save
from tests.support.days import wait_until_no_midnight_is_near
from tests.support.document import document
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant
from tests.support.world import build_world, keep_step, rows_of

SAVED = {"messages": "She keeps bees.", "user_id": "ana", "infer": False, "on_duplicate": "allow"}

# A request for each operation that takes the key, and another body for the same one.
REQUESTS: dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]] = {
    "/v1/tenants": ({"tenant_name": "New"}, {"tenant_name": "Other"}),
    "/v1/tenants/{tenant_id}/keys": ({"scopes": ["read"]}, {"scopes": ["write"]}),
    "/v1/keys": ({"scopes": ["read"]}, {"scopes": ["write"]}),
    "/v1/agents": ({"agent_name": "New"}, {"agent_name": "Other"}),
    "/v1/users": ({"user_name": "New"}, {"user_name": "Other"}),
    "/v1/projects": ({"project_name": "New"}, {"project_name": "Other"}),
    "/v1/sessions": ({"user_id": "ana"}, {"user_id": "ben"}),
    "/v1/sessions/{session_id}/end": (None, {}),
    "/v1/sessions/{session_id}/fork": ({}, {"session_name": "Once more"}),
    "/v1/store/batch": (
        {"operations": [{"op": "put", "namespace": ["a"], "key": "k", "value": {"n": 1}}]},
        {"operations": [{"op": "put", "namespace": ["a"], "key": "k", "value": {"n": 2}}]},
    ),
    "/v1/store/sweep": (None, {}),
    "/v1/sessions/{session_id}/compact": ({"force": True, "keep_messages": 1}, {"force": True}),
    "/v1/sessions/{session_id}/saver/copy": (
        {"target_session_id": "copy"},
        {"target_session_id": "copy-2"},
    ),
    "/v1/saver/prune": (
        {"session_ids": ["talk"], "strategy": "delete"},
        {"session_ids": ["talk"]},
    ),
    "/v1/saver/runs/delete": ({"run_ids": ["run"]}, {"run_ids": ["other"]}),
    "/v1/sessions/{session_id}/reopen": (None, {}),
    "/v1/sessions/{session_id}/messages": (
        {"messages": [{"role": "user", "content": "Hello."}]},
        {"messages": [{"role": "user", "content": "Goodbye."}]},
    ),
    "/v1/sessions/{session_id}/messages/delete": ({"oldest": 1}, {"oldest": 2}),
    "/v1/sessions/{session_id}/state/snapshots": (None, {}),
    "/v1/sessions/{session_id}/state/snapshots/{snapshot_id}/restore": (None, {}),
    "/v1/sessions/{session_id}/checkpoints": ({"step": 1}, {"step": 2}),
    "/v1/sessions/{session_id}/checkpoints/{checkpoint_id}/restore": (None, {}),
    "/v1/sessions/{session_id}/approvals/{tool_call_id}": (
        {"decision": "approved"},
        {"decision": "rejected"},
    ),
    "/v1/projects/{project_id}/transfer": (
        {"to_user_id": "ben"},
        {"to_user_id": "{user_id}"},
    ),
    "/v1/projects/{project_id}/profile/derive": (None, {}),
    "/v1/users/{user_id}/profile/derive": (None, {}),
    "/v1/users/{user_id}/memory-document": (
        {"version": "1.0", "facts": [{"id": "fact_1", "content": "She keeps bees."}]},
        {"version": "1.0", "facts": [{"id": "fact_1", "content": "She keeps goats."}]},
    ),
    "/v1/forgetting/run": ({"dry_run": False}, {"dry_run": False, "steps": ["expired"]}),
    "/v1/folders": (
        {"folder_name": "F", "scope": "user", "user_id": "{user_id}"},
        {"folder_name": "G", "scope": "user", "user_id": "{user_id}"},
    ),
    "/v1/folders/{folder_id}/files": ({"rent": "May"}, {"rent": "June"}),
    "/v1/folders/{folder_id}/files/{file_id}/reingest": (None, {}),
    "/v1/folders/{folder_id}/passages": ({"content": "One."}, {"content": "Two."}),
    "/v1/files/{file_id}/extract": ({}, {"prompt": "Only what it costs."}),
    "/v1/graph/relations": (
        {"source_id": "{entity_id}", "relation": "knows", "destination": "Ben"},
        {"source_id": "{entity_id}", "relation": "knows", "destination": "Cat"},
    ),
    "/v1/graph/entities/{entity_id}/aliases": ({"alias": "Annie"}, {"alias": "Anya"}),
    "/v1/graph/entities/{entity_id}/merge": (
        {"entity_ids": ["{other_entity_id}"]},
        {"entity_ids": ["{other_entity_id}"], "reason": "The same."},
    ),
    "/v1/graph/entities/{entity_id}/split": ({"name": "Annie"}, {"name": "Anya"}),
    "/v1/graph/changes/{change_id}/undo": (None, {}),
    "/v1/blocks": ({"label": "notes"}, {"label": "other"}),
    "/v1/blocks/{block_id}/append": ({"text": "And Paris."}, {"text": "And Oslo."}),
    "/v1/blocks/{block_id}/insert": ({"text": "And Paris."}, {"text": "And Oslo."}),
    "/v1/blocks/{block_id}/replace": (
        {"old": "Munich", "new": "Paris"},
        {"old": "Munich", "new": "Oslo"},
    ),
    "/v1/blocks/{block_id}/rewrite": ({"value": "Paris."}, {"value": "Oslo."}),
    "/v1/blocks/{block_id}/undo": (None, {}),
    "/v1/blocks/{block_id}/redo": (None, {}),
    "/v1/memories": (SAVED, SAVED | {"messages": "She keeps goats."}),
    "/v1/memories/delete": (
        {"user_id": "ben", "confirm": True},
        {"user_id": "ana", "confirm": True},
    ),
    "/v1/memories/{memory_id}/supersede": (
        {"content": "She moved to Bonn."},
        {"content": "She moved to Rome."},
    ),
    "/v1/memories/{memory_id}/restore": (
        {"history_id": "{history_id}"},
        {"history_id": "{history_id}", "reason": "Again."},
    ),
    "/v1/memories/{memory_id}/feedback": ({"rating": "wrong"}, {"rating": "helpful"}),
    "/v1/memories/decisions/{decision_id}/store": (
        {"memory_type": "fact"},
        {"memory_type": "preference"},
    ),
    "/v1/feedback/used": (
        {"session_id": "{session_id}", "memory_ids": ["{memory_id}"]},
        {"session_id": "{session_id}", "memory_ids": ["mem_2"]},
    ),
    "/v1/evaluations": (
        {"name": "before", "dataset": "questions", "metrics": {"recall": 0.7}},
        {"name": "after", "dataset": "questions", "metrics": {"recall": 0.7}},
    ),
    "/v1/tools/{name}/call": (
        {"session_id": "{session_id}", "arguments": {"content": "She keeps bees."}},
        {"session_id": "{session_id}", "arguments": {"content": "She keeps goats."}},
    ),
    "/v1/sessions/{session_id}/extract": ({}, {"prompt": "Only what she eats."}),
    "/v1/jobs/{job_id}/retry": (None, {}),
    "/v1/jobs/{job_id}/cancel": (None, {}),
    "/v1/webhooks": (
        {"url": "https://kemem.invalid/new"},
        {"url": "https://kemem.invalid/other"},
    ),
    "/v1/webhooks/{webhook_id}/rotate-secret": (None, {}),
    "/v1/webhooks/{webhook_id}/test": (None, {}),
    "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": (None, {}),
}

# The same operations, asked in a way that does something else.
VARIANTS = {
    "/v1/memories?async=true": ({"messages": "I live in Lisbon.", "user_id": "ana"},
                                {"messages": "I live in Madrid.", "user_id": "ana"}),
    "/v1/memories (infer)": ({"messages": "I live in Lisbon.", "user_id": "ana"},
                             {"messages": "I live in Madrid.", "user_id": "ana"}),
}  # fmt: skip
ASKED = REQUESTS | VARIANTS

# Those that change what others need are asked last, and in this order: each still has an effect.
LAST = (
    "/v1/blocks/{block_id}/replace", "/v1/blocks/{block_id}/rewrite", "/v1/blocks/{block_id}/undo",
    "/v1/blocks/{block_id}/redo", "/v1/jobs/{job_id}/retry", "/v1/jobs/{job_id}/cancel",
    "/v1/graph/changes/{change_id}/undo", "/v1/graph/entities/{entity_id}/split",
    "/v1/graph/entities/{entity_id}/merge", "/v1/files/{file_id}/extract",
    "/v1/folders/{folder_id}/files/{file_id}/reingest", "/v1/store/batch", "/v1/store/sweep",
    "/v1/memories/decisions/{decision_id}/store", "/v1/memories/{memory_id}/restore",
    "/v1/memories/{memory_id}/supersede", "/v1/projects/{project_id}/transfer",
    "/v1/sessions/{session_id}/extract", "/v1/sessions/{session_id}/fork",
    "/v1/sessions/{session_id}/approvals/{tool_call_id}",
    "/v1/sessions/{session_id}/state/snapshots/{snapshot_id}/restore",
    "/v1/sessions/{session_id}/checkpoints/{checkpoint_id}/restore", "/v1/saver/runs/delete",
    "/v1/saver/prune", "/v1/sessions/{session_id}/compact",
    "/v1/sessions/{session_id}/messages/delete", "/v1/sessions/{session_id}/end",
    "/v1/sessions/{session_id}/reopen", "/v1/memories/delete", "/v1/forgetting/run",
)  # fmt: skip

# What it changes is no row of the tenant: a new tenant has rows of its own.
UNSEEN = {"/v1/tenants"}
IN_ORDER = [*sorted(ASKED.keys() - set(LAST)), *LAST]


def taking_the_key() -> set[str]:
    return {
        path
        for path, operations in document()["paths"].items()
        for operation in operations.values()
        if any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", []))
    }


def test_every_post_that_writes_takes_the_key() -> None:
    paths = document()["paths"]
    posts = {path for path, operations in paths.items() if "post" in operations}

    asking = {
        "/v1/memories/search", "/v1/memories/validate", "/v1/messages/search",
        "/v1/sessions/{session_id}/context", "/v1/sessions/{session_id}/window/trim",
        "/v1/passages/search", "/v1/sessions/{session_id}/saver/content/read",
    }  # fmt: skip
    assert taking_the_key() == posts - asking
    # What is imported is no JSON: tests/exports.
    assert taking_the_key() == REQUESTS.keys() | {"/v1/import"}


@pytest.fixture
async def anyone(app: FastAPI, runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    """A client of `acme` that may do everything."""
    caller = await make_key(runtime, acme.tenant_id, "admin", "operator")
    async with client_of(app, caller.key) as opened:
        yield opened


async def post(
    client: AsyncClient, path: str, body: Any, key: str = "once", **ids: str
) -> Response:
    """As `ASKED` writes it: ids in braces, and perhaps a remark behind the path."""
    address = path.removeprefix("/v1").split(" ")[0].format(**ids)
    if isinstance(body, dict):
        body = {
            name: [one.format(**ids) for one in value]
            if name in {"entity_ids", "memory_ids"}
            else value.format(**ids)
            if isinstance(value, str)
            else value
            for name, value in body.items()
        }
    headers = {"Idempotency-Key": key, "If-Match": "*"}
    return await client.post(address, json=body, headers=headers)


async def prepare(client: AsyncClient, path: str, ids: dict[str, str]) -> None:
    """Bring the world into a state in which the operation has an effect."""
    if path.endswith("/retry"):
        ok(await client.post(f"/jobs/{ids['job_id']}/cancel"))
    elif path == "/v1/memories/{memory_id}/restore":
        edited = {"content": "She moved to Berlin."}
        ok(await client.patch(f"/memories/{ids['memory_id']}", json=edited))
    elif path == "/v1/store/sweep":
        gone = {"op": "put", "namespace": ["a"], "key": "gone", "value": {}, "ttl_minutes": 0}
        ok(await client.post("/store/batch", json={"operations": [gone]}))
    elif path.endswith("/compact"):
        await append(client, ids["session_id"], *(f"Line {number}." for number in range(6)))
    elif path.startswith("/v1/saver/"):
        await keep_step(client, ids["session_id"], "step", "run")


def without_secret(response: Response) -> Any:
    body = response.json()
    body.pop("secret", None)
    return body


async def ask_twice(client: AsyncClient, path: str, ids: dict[str, str], dsn: str) -> None:
    """And once more with another body: only the first request changes anything."""
    body, other = ASKED[path]
    await prepare(client, path, ids)
    before = await rows_of(dsn, ids["tenant_id"])
    first = await post(client, path, body, path, **ids)
    after = await rows_of(dsn, ids["tenant_id"])

    second = await post(client, path, body, path, **ids)
    refused = await post(client, path, other, path, **ids)

    assert first.is_success, (path, first.text)
    changed = {table for table, _ in before ^ after} - {"idempotency_keys"}
    assert changed or path in UNSEEN, path
    assert "Idempotency-Replayed" not in first.headers, path
    assert second.headers["Idempotency-Replayed"] == "true", path
    assert second.status_code == first.status_code, path
    assert second.headers["content-type"] == first.headers["content-type"], path
    if "key" not in path and "tenants" not in path:
        assert without_secret(second) == without_secret(first), path
    assert refused.status_code == 422, path
    assert refused.json()["code"] == "idempotency_key_reused", path
    assert await rows_of(dsn, ids["tenant_id"]) == after, path


class TestTwice:
    async def test_every_operation_has_one_effect(
        self, runtime: Runtime, client: AsyncClient, anyone: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        world = await build_world(runtime, client, acme)

        for path in IN_ORDER:
            # It takes as long as many tests.
            wait_until_no_midnight_is_near()
            await ask_twice(anyone, path, world.ids, dsn)

    async def test_another_path_is_refused(self, client: AsyncClient) -> None:
        await post(client, "/v1/agents", {"agent_name": "New"})

        response = await post(client, "/v1/users", {"agent_name": "New"})
        response = await post(client, "/v1/users", {"user_name": "New"})

        assert response.json()["code"] == "idempotency_key_reused"

    async def test_another_key_is_another_request(self, client: AsyncClient) -> None:
        first = await post(client, "/v1/agents", {"agent_name": "New"}, "one")
        second = await post(client, "/v1/agents", {"agent_name": "New"}, "two")

        assert first.json()["agent_id"] != second.json()["agent_id"]

    async def test_without_a_key_every_request_counts(self, client: AsyncClient) -> None:
        for _ in range(2):
            assert (await client.post("/agents", json={"agent_name": "N"})).status_code == 201

        assert len((await client.get("/agents")).json()["items"]) == 2

    async def test_another_tenant_and_another_caller_have_their_own(
        self, client: AsyncClient, stranger: AsyncClient, anyone: AsyncClient
    ) -> None:
        answers = [
            await post(one, "/v1/agents", {"agent_name": "New"})
            for one in (client, stranger, anyone)
        ]

        assert [answer.status_code for answer in answers] == [201, 201, 201]
        assert len({answer.json()["agent_id"] for answer in answers}) == 3


class TestSecrets:
    @for_each("path", ["/v1/keys", "/v1/tenants/{tenant_id}/keys", "/v1/tenants"])
    async def test_a_kept_answer_holds_no_secret(
        self, anyone: AsyncClient, dsn: str, acme: Caller, path: str
    ) -> None:
        body, _ = REQUESTS[path]
        ids = {"tenant_id": acme.tenant_id}
        first = (await post(anyone, path, body, path, **ids)).json()
        secret = (first if path != "/v1/tenants" else first["key"]).pop("key")
        second = (await post(anyone, path, body, path, **ids)).json()

        assert secret.startswith("kem_")
        assert (second if path != "/v1/tenants" else second["key"]).pop("key") is None
        assert second == first
        async with owned(dsn) as connection:
            kept = await connection.fetch(
                "SELECT answer FROM idempotency_keys WHERE tenant_id = $1", acme.tenant_id
            )
        assert kept
        assert not any(secret.encode() in row["answer"] for row in kept)

    @for_each("path", ["/v1/webhooks", "/v1/webhooks/{webhook_id}/rotate-secret"])
    async def test_a_kept_answer_holds_no_secret_of_a_webhook(
        self, anyone: AsyncClient, dsn: str, acme: Caller, path: str
    ) -> None:
        body, _ = REQUESTS[path]
        made = await anyone.post("/webhooks", json={"url": "https://kemem.invalid/hook"})
        ids = {"webhook_id": made.json()["webhook_id"]}
        secret = (await post(anyone, path, body, path, **ids)).json()["secret"]
        second = (await post(anyone, path, body, path, **ids)).json()

        assert secret.startswith("whsec_")
        assert second["secret"] is None
        async with owned(dsn) as connection:
            kept = await connection.fetch(
                "SELECT answer FROM idempotency_keys WHERE tenant_id = $1", acme.tenant_id
            )
        assert not any(secret.encode() in row["answer"] for row in kept)


class TestFailures:
    async def test_a_refused_request_may_be_corrected_under_the_same_key(
        self, client: AsyncClient
    ) -> None:
        refused = await post(client, "/v1/users", {"user_id": "a/b"})
        mended = await post(client, "/v1/users", {"user_id": "ab"})

        assert (refused.status_code, mended.status_code) == (422, 201)

    async def test_a_conflict_is_not_kept(self, client: AsyncClient) -> None:
        await client.post("/users", json={"user_id": "ana"})

        for _ in range(2):
            response = await post(client, "/v1/users", {"user_id": "ana"})

            assert (response.status_code, response.json()["code"]) == (409, "id_taken")
            assert "Idempotency-Replayed" not in response.headers

    async def test_a_refusal_of_the_gate_is_not_kept(self, client: AsyncClient) -> None:
        body = SAVED | {"messages": "No."}

        for _ in range(2):
            response = await post(client, "/v1/memories", body)

            assert (response.status_code, response.json()["code"]) == (422, "gate_rejected")

    async def test_a_missing_row_is_not_kept(self, client: AsyncClient) -> None:
        path = "/v1/sessions/later/end"
        assert (await post(client, path, None)).status_code == 404
        await client.post("/sessions", json={"session_id": "later", "user_id": "ana"})

        assert (await post(client, path, None)).status_code == 200


@asynccontextmanager
async def owned(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"SET ROLE {OWNER}")
        yield connection
    finally:
        await connection.close()


class TestExpiry:
    async def test_a_kept_answer_says_when_it_goes(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await post(client, "/v1/agents", {"agent_name": "New"})

        async with owned(dsn) as connection:
            expires_at = await connection.fetchval(
                "SELECT expires_at FROM idempotency_keys WHERE tenant_id = $1", acme.tenant_id
            )
        remaining = expires_at - datetime.now(UTC)
        assert timedelta(hours=23, minutes=59) < remaining <= timedelta(hours=24)

    async def test_an_expired_one_is_a_new_request(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        first = await post(client, "/v1/agents", {"agent_name": "New"})
        async with owned(dsn) as connection:
            await connection.execute(
                "UPDATE idempotency_keys SET expires_at = now() WHERE tenant_id = $1",
                acme.tenant_id,
            )

        second = await post(client, "/v1/agents", {"agent_name": "Other"})
        third = await post(client, "/v1/agents", {"agent_name": "Other"})

        assert second.status_code == 201
        assert first.json()["agent_id"] != second.json()["agent_id"]
        assert third.json() == second.json()


CLAIMED = """
SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
WHERE locktype = 'advisory' AND datname = current_database()
"""


# Operations with the table in which each makes one row.
MADE = {
    "/v1/agents": "agents",
    "/v1/memories": "memories",
    "/v1/memories (infer)": "memories",
    "/v1/memories?async=true": "jobs",
    "/v1/memories/{memory_id}/feedback": "memory_feedback",
    "/v1/keys": "api_keys",
    "/v1/webhooks": "webhooks",
    "/v1/webhooks/{webhook_id}/test": "webhook_deliveries",
}


class TestAtOnce:
    @pytest.fixture
    async def ids(self, client: AsyncClient) -> dict[str, str]:
        """Of the rows that the operations are about."""
        saved = await save(client, "She moved to Munich last week.")
        webhook = ok(await client.post("/webhooks", json={"url": "https://kemem.invalid"}), 201)
        return {"memory_id": saved["memory_id"], "webhook_id": webhook["webhook_id"]}

    @for_each("path", MADE)
    async def test_only_one_of_many_has_an_effect(
        self, client: AsyncClient, acme: Caller, dsn: str, ids: dict[str, str], path: str
    ) -> None:
        body, _ = ASKED[path]
        before = await rows_of(dsn, acme.tenant_id)

        answers = await asyncio.gather(*(post(client, path, body, path, **ids) for _ in range(12)))

        made = [
            one for one in answers if one.is_success and "Idempotency-Replayed" not in one.headers
        ]
        running = [one for one in answers if one.status_code == 409]
        replayed = [one for one in answers if "Idempotency-Replayed" in one.headers]
        assert len(made) == 1
        assert len(made) + len(running) + len(replayed) == 12
        for one in running:
            assert one.json()["code"] == "request_in_progress"
            assert one.headers["Retry-After"] == "1"
        new = [name for name, _ in await rows_of(dsn, acme.tenant_id) - before]
        assert new.count(MADE[path]) == 1
        assert new.count("idempotency_keys") == 1

    async def test_whoever_waits_for_another_is_told_to_come_back(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        """The first request is stopped by a lock that the test holds, not by a sleep."""
        async with owned(dsn) as connection:
            async with connection.transaction():
                await connection.execute("LOCK TABLE agents IN EXCLUSIVE MODE")
                first = asyncio.create_task(post(client, "/v1/agents", {"agent_name": "New"}))
                while not await connection.fetchval(CLAIMED):  # noqa: ASYNC110 (PostgreSQL knows)
                    await asyncio.sleep(0.01)

                second = await post(client, "/v1/agents", {"agent_name": "New"})

            assert (await first).status_code == 201
        assert (second.status_code, second.json()["code"]) == (409, "request_in_progress")
        third = await post(client, "/v1/agents", {"agent_name": "New"})
        assert third.json() == (await first).json()

    async def test_callers_with_the_same_words_do_not_meet(
        self, app: FastAPI, runtime: Runtime
    ) -> None:
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(client_of(app, (await make_tenant(runtime)).key))
                for _ in range(4)
            ]

            answers = await asyncio.gather(
                *(post(one, "/v1/agents", {"agent_name": "New"}) for one in clients)
            )

        assert [one.status_code for one in answers] == [201] * 4
