"""What is kept of a bucket of memories goes with whoever the bucket belongs to, and no other."""

from typing import Any

import pytest
from httpx import AsyncClient

from app.memory.memories.bucket_repository import BucketRepository, VectorBucket
from app.runtime import Runtime
from tests.support.api import append, execute, ok
from tests.support.tenants import Caller

Bucket = tuple[str, str]

# Ana talks to the coach in one session and to nobody in the other; Ben has another agent.
OF_ANA = {("session", "lesson"), ("session", "alone"), ("user", "ana")}
OF_BEN = {("session", "ben-talk"), ("user", "ben")}
OF_AGENTS = {("agent", "coach"), ("agent", "other")}
# The same ids in another scope are somebody else.
NAMESAKES = {("project", "ana"), ("user", "lesson"), ("session", "coach"), ("user", "coach")}
ALL = OF_ANA | OF_BEN | OF_AGENTS | {("project", "apollo")} | NAMESAKES


async def register(runtime: Runtime, caller: Caller) -> None:
    async with runtime.database.begin(caller.tenant_id) as db:
        buckets = BucketRepository(db, caller.tenant_id)
        for scope, scope_id in sorted(ALL):
            for model in ("a-model", "another-model"):
                await buckets.register(VectorBucket(scope, scope_id, model, 9_000, 1536))


async def registered(dsn: str, caller: Caller) -> set[Bucket]:
    rows = await execute(
        dsn, "SELECT scope, scope_id FROM memory_buckets WHERE tenant_id = $1", caller.tenant_id
    )
    return {(row["scope"], row["scope_id"]) for row in rows}


@pytest.fixture(autouse=True)
async def buckets(
    client: AsyncClient, stranger: AsyncClient, runtime: Runtime, acme: Caller, other: Caller
) -> None:
    """Buckets of both models of everybody, under the same ids in two tenants."""
    for each, caller in ((client, acme), (stranger, other)):
        for agent_id in ("coach", "other"):
            ok(await each.post("/agents", json={"agent_id": agent_id, "agent_name": "A"}), 201)
        for user_id in ("ana", "ben"):
            ok(await each.post("/users", json={"user_id": user_id}), 201)
        await append(each, "lesson", "Hello.", agent_id="coach")
        await append(each, "alone", "Hello.")
        await append(each, "ben-talk", "Hello.", user_id="ben", agent_id="other")
        body = {"project_id": "apollo", "project_name": "P", "owner_id": "ana"}
        ok(await each.post("/projects", json=body), 201)
        await register(runtime, caller)


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("/users/ana", OF_ANA),
        ("/sessions/lesson", {("session", "lesson")}),
        ("/agents/coach", {("session", "lesson"), ("agent", "coach")}),
        ("/projects/apollo", {("project", "apollo")}),
    ],
)
async def test_a_bucket_goes_with_whose_it_is_and_all_others_stay(
    client: AsyncClient, acme: Caller, other: Caller, dsn: str, path: str, gone: set[Bucket]
) -> None:
    counted: Any = ok(await client.delete(path, params={"dry_run": True}))
    receipt: Any = ok(await client.delete(path, params={"confirm": True}))

    assert await registered(dsn, acme) == ALL - gone
    assert await registered(dsn, other) == ALL
    assert receipt["deleted"]["buckets"] == counted["deleted"]["buckets"] == 2 * len(gone)
