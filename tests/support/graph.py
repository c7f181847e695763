"""The graph as tests of it speak: relations stated by hand, entities by name."""

from datetime import datetime
from typing import Any

from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.memory.graph.statements import GraphOwner, NamedEntity, RelationStatement, WriteResult
from app.memory.graph.writer import GraphWriter
from app.memory.memories.repository import MemoryRepository
from app.runtime import Runtime
from tests.support.api import every_page, execute, ok
from tests.support.working import over, working

ANA = GraphOwner("user", "ana", "ana", None, None)


async def people(client: AsyncClient, *user_ids: str) -> None:
    """Users at home with the default agent; one that is there stays."""
    for user_id in user_ids:
        made = await client.post("/users", json={"user_id": user_id})
        assert made.status_code in {201, 409}, made.text


async def state(
    client: AsyncClient, source: str, relation: str, destination: str, **rest: Any
) -> dict[str, Any]:
    """State a relation of Ana's, unless `rest` says otherwise."""
    body = {"source": source, "relation": relation, "destination": destination, "user_id": "ana"}
    return ok(await client.post("/graph/relations", json=body | rest), 201)


async def entity(client: AsyncClient, name: str, **params: Any) -> dict[str, Any]:
    """The one entity with this name."""
    [found] = [
        one
        for one in ok(await client.get("/graph/entities", params={"q": name} | params))["items"]
        if one["name"] == name
    ]
    return found


def triples(relations: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (one["source"]["name"], one["relation"], one["destination"]["name"]) for one in relations
    }


async def known(client: AsyncClient, **params: Any) -> set[tuple[str, str, str]]:
    return triples(ok(await client.get("/graph/relations", params=params))["items"])


async def names(client: AsyncClient) -> set[str]:
    """Of all entities that the client sees."""
    return {one["name"] for one in await every_page(client, "/graph/entities")}


async def refreshed(client: AsyncClient, runtime: Runtime, dsn: str, tenant_id: str) -> None:
    """Let a worker do the pending refreshes of graphs at once."""
    due = "UPDATE jobs SET due_at = now() WHERE tenant_id = $1 AND kind = 'graph_tidy'"
    await execute(dsn, due, tenant_id)
    async with working(runtime, dsn, profiles=False):
        for job in await every_page(client, "/jobs", kind="graph_tidy"):
            assert (await over(client, job["job_id"]))["status"] == "succeeded"


async def write(
    runtime: Runtime,
    tenant_id: str,
    statements: list[RelationStatement],
    *,
    now: datetime,
    owner: GraphOwner = ANA,
    **rest: Any,
) -> WriteResult:
    """Write statements as a run at `now` does."""
    async with runtime.database.begin(tenant_id) as db:
        access = Access(tenant_id)
        await MemoryRepository(db, access).lock_bucket(owner.scope, owner.scope_id)
        writer = GraphWriter(db, access, actor=None, job_id=None, now=now, **rest)
        return await writer.store(owner, statements)


def said(source: str, relation: str, destination: str, **rest: Any) -> RelationStatement:
    return RelationStatement(NamedEntity(source), relation, NamedEntity(destination), **rest)
