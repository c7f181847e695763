"""Two at once: what is erased while a graph is read, and while it is written."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
import pytest
from httpx import AsyncClient, Response
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access, Principal
from app.memory.graph.errors import EntityNotFoundError
from app.memory.graph.schemas import (
    EntityQuery,
    GraphSearchQuery,
    NeighbourQuery,
    PathQuery,
    RelationQuery,
)
from app.memory.graph.service import GraphService
from app.platform.database.engine import Database
from app.platform.values.pagination import PageQuery
from app.platform.work.unit import Work
from app.runtime import Runtime
from tests.support.api import execute, ok, problem, save
from tests.support.graph import known, people, state
from tests.support.locks import until_somebody_waits
from tests.support.tenants import Caller
from tests.support.working import over, working

NEVER_WAITS = "SET LOCAL lock_timeout = '500ms'"
"""Sooner than PostgreSQL looks for a ring, which it may end at the other side."""


@pytest.fixture(autouse=True)
async def _people(client: AsyncClient) -> None:
    await people(client, "ana")


# Read.


async def erase(client: AsyncClient) -> None:
    ok(await client.delete("/users/ana", params={"confirm": True}))


class Interrupted:
    """A database in whose next transaction something happens behind one of its statements."""

    def __init__(self, database: Database, behind: int, act: Callable[[], Awaitable[None]]) -> None:
        self._database = database
        self.left = behind
        self._act = act

    @asynccontextmanager
    async def begin(self, tenant_id: str) -> AsyncIterator["InterruptedSession"]:
        async with self._database.begin(tenant_id) as db:
            yield InterruptedSession(db, self)

    async def read(self, statement: Awaitable[Any]) -> Any:
        found = await statement
        self.left -= 1
        if self.left == 0:
            await self._act()
        return found


class InterruptedSession:
    def __init__(self, db: AsyncSession, interrupted: Interrupted) -> None:
        self._db = db
        self._interrupted = interrupted

    async def scalar(self, *args: Any) -> Any:
        return await self._interrupted.read(self._db.scalar(*args))

    async def scalars(self, *args: Any) -> Any:
        return await self._interrupted.read(self._db.scalars(*args))

    async def execute(self, *args: Any) -> Any:
        return await self._interrupted.read(self._db.execute(*args))


def reader(
    runtime: Runtime, caller: Caller, behind: int, act: Callable[[], Awaitable[None]]
) -> tuple[GraphService, Principal, Interrupted]:
    database = Interrupted(runtime.database, behind, act)
    principal = Principal(Access(caller.tenant_id), caller.key_id, frozenset({"read"}), {})
    work = Work(cast("Database", database), enabled=True)
    return GraphService(work, runtime.now), principal, database


Read = Callable[[GraphService, Principal, dict[str, str]], Awaitable[Any]]

READS: dict[str, tuple[int, Read]] = {
    "entities": (2, lambda service, who, _: service.entities(who, EntityQuery())),
    "entity": (3, lambda service, who, ids: service.entity(who, ids["from"])),
    "relations": (2, lambda service, who, _: service.relations(who, RelationQuery())),
    "history": (2, lambda service, who, ids: service.history(who, ids["relation"], PageQuery())),
    "neighbours": (
        5,
        lambda service, who, _: service.neighbours(who, NeighbourQuery(name="Ana", user_id="ana")),
    ),
    "paths": (
        6,
        lambda service, who, ids: service.paths(
            who, PathQuery.model_validate({"from": ids["from"], "to": ids["to"]})
        ),
    ),
    "search": (
        4,
        lambda service, who, _: service.search(who, GraphSearchQuery(q="Ana", user_id="ana")),
    ),
}


@pytest.mark.parametrize(
    ("kind", "behind"),
    [(kind, number + 1) for kind, (statements, _) in READS.items() for number in range(statements)],
)
async def test_rows_erased_during_a_read_are_left_out(
    client: AsyncClient, runtime: Runtime, acme: Caller, kind: str, behind: int
) -> None:
    made = await state(client, "Ana", "likes", "tea")
    ids = {
        "from": made["source"]["entity_id"],
        "to": made["destination"]["entity_id"],
        "relation": made["relation_id"],
    }
    statements, read = READS[kind]
    service, who, database = reader(runtime, acme, behind, lambda: erase(client))

    try:
        found = (await read(service, who, ids)).model_dump()
    except EntityNotFoundError:
        found = {}

    assert database.left <= 0
    if behind < statements and kind not in {"entities", "entity"}:
        named = {"neighbours": "relations", "search": "relations", "paths": "paths"}
        assert not found.get(named.get(kind, "items"))


async def test_page_continues_after_rows_left_out(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    await people(client, "ben")
    await state(client, "Ben", "likes", "rice", user_id="ben")
    await state(client, "Ana", "likes", "tea")
    service, who, _ = reader(runtime, acme, 1, lambda: erase(client))

    first = await service.relations(who, RelationQuery(limit=1))
    assert first.items == []
    [last] = (await service.relations(who, RelationQuery(limit=1, cursor=first.next_cursor))).items
    assert last.source.name == "Ben"


# Written.


@asynccontextmanager
async def erasing(dsn: str, tenant_id: str, owner: str) -> AsyncIterator[asyncpg.Connection]:
    """In the middle of an erasure: whose it is, is locked, and no row is gone yet."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("SET ROLE kemem_owner")
    transaction = connection.transaction()
    await transaction.start()
    column = f"{owner.removesuffix('s')}_id"
    await connection.execute(
        f"SELECT 1 FROM {owner} WHERE tenant_id = $1 AND {column} IN ('ana', 'apollo', 'helper') "
        "FOR UPDATE",
        tenant_id,
    )
    await connection.execute(NEVER_WAITS)
    try:
        yield connection
    finally:
        await transaction.commit()
        await connection.close()


async def remove_graph(connection: asyncpg.Connection, tenant_id: str) -> None:
    """As an erasure does it, the rows first; none may be somebody's who waits for the erasure."""
    for table in ("graph_relations", "graph_changes", "graph_entities"):
        await connection.execute(f"DELETE FROM {table} WHERE tenant_id = $1", tenant_id)


PLACES: dict[str, dict[str, Any]] = {
    "users": {"user_id": "ana"},
    "projects": {"user_id": "ana", "project_id": "apollo"},
    "agents": {"user_id": None, "agent_id": "helper", "scope": "agent"},
}


@pytest.mark.parametrize("owner", sorted(PLACES))
@pytest.mark.parametrize(
    "write",
    ["correct", "withdraw", "replace", "rename", "alias", "no alias", "merge", "split", "undo"],
)
async def test_edit_waits_for_an_erasure_without_deadlock(
    client: AsyncClient, acme: Caller, dsn: str, owner: str, write: str
) -> None:
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    ok(await client.post("/agents", json={"agent_id": "helper", "agent_name": "Helper"}), 201)
    place = PLACES[owner]
    tea = await state(client, "Ana", "likes", "tea", **place)
    twin = await state(client, "Anna", "likes", "tea", **place)
    relation = f"/graph/relations/{tea['relation_id']}"
    entity = f"/graph/entities/{tea['source']['entity_id']}"
    into = {"entity_ids": [twin["source"]["entity_id"]]}
    if write == "undo":
        change = ok(await client.post(f"{entity}/merge", json=into))
        calls = client.post(f"/graph/changes/{change['change_id']}/undo")
    else:
        said = {"source": "Ana", "relation": "likes", "destination": "rice", "single": True}
        calls = {
            "correct": lambda: client.patch(relation, json={"confidence": 0.5}),
            "withdraw": lambda: client.delete(relation),
            "replace": lambda: client.post("/graph/relations", json=said | place),
            "rename": lambda: client.patch(entity, json={"name": "Ann"}),
            "alias": lambda: client.post(f"{entity}/aliases", json={"alias": "A."}),
            "no alias": lambda: client.delete(f"{entity}/aliases", params={"alias": "A."}),
            "merge": lambda: client.post(f"{entity}/merge", json=into),
            "split": lambda: client.post(f"{entity}/split", json={"name": "Another"}),
        }[write]()

    async with erasing(dsn, acme.tenant_id, owner) as connection:
        answering = asyncio.ensure_future(calls)
        await until_somebody_waits(dsn, connection.get_server_pid())
        await remove_graph(connection, acme.tenant_id)
    answer: Response = await answering

    if write == "replace":
        assert answer.status_code == 201, answer.text
    else:
        assert answer.status_code == 404, answer.text


@pytest.mark.parametrize("scope", ["user", "project"])
async def test_refresh_never_deadlocks(
    client: AsyncClient, acme: Caller, runtime: Runtime, dsn: str, scope: str
) -> None:
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    place = {"project_id": "apollo", "scope": "project"} if scope == "project" else {}
    outcome = await save(client, "Something that no rule reads.", **place)
    ids = {"memory_ids": [outcome["memory_id"]]}
    await state(client, "Ana", "likes", "tea", **ids, **place)
    path = f"/memories/{outcome['memory_id']}"
    ok(await client.patch(path, json={"status": "archived"}))
    order = "UPDATE jobs SET due_at = now() WHERE tenant_id = $1 RETURNING job_id, kind"

    async with working(runtime, dsn, profiles=False):
        async with erasing(dsn, acme.tenant_id, "users") as connection:
            owed = await execute(dsn, order, acme.tenant_id)
            await until_somebody_waits(dsn, connection.get_server_pid())
            await remove_graph(connection, acme.tenant_id)
        [job_id] = [row["job_id"] for row in owed if row["kind"] == "graph_tidy"]
        job = await over(client, job_id)

    assert (job["status"], job["attempts"]) == ("succeeded", 1)
    assert await known(client) == set()


async def test_merge_and_memory_deletion_never_deadlock(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    memory_id = (await save(client, "Something that no rule reads."))["memory_id"]
    tea = await state(client, "Ana", "likes", "tea")
    twin = await state(client, "Anna", "likes", "rice", memory_ids=[memory_id])
    path = f"/graph/entities/{tea['source']['entity_id']}/merge"
    body = {"entity_ids": [twin["source"]["entity_id"]]}
    connection = await asyncpg.connect(dsn)
    await connection.execute("SET ROLE kemem_owner")
    where = "memories WHERE tenant_id = $1 AND memory_id = $2"
    mine = (acme.tenant_id, memory_id)
    try:
        async with connection.transaction():
            await connection.execute(f"SELECT 1 FROM {where} FOR UPDATE", *mine)
            await connection.execute(NEVER_WAITS)
            merging = asyncio.ensure_future(client.post(path, json=body))
            await until_somebody_waits(dsn, connection.get_server_pid())
            await connection.execute(f"DELETE FROM {where}", *mine)
        problem(await merging, 503, "database_busy")
        problem(await client.post(path, json=body), 404, "entity_not_found")
    finally:
        await connection.close()
