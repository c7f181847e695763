"""References that a deletion clears: no row is left that names one which is gone.

Each test has two connections: on one a row comes to refer to another, on the other that one is
deleted. Whichever is first, nothing dangles and nobody gets an unexpected error.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import asyncpg
import pytest
from httpx import AsyncClient

from app.governance.tables import metadata
from app.identity.tenants.access import Access
from app.memory.graph.change_repository import ChangeRepository
from app.platform.database.engine import driver_of
from app.platform.database.failures import DatabaseBusyError
from app.runtime import Runtime
from tests.support.api import append, ok, save
from tests.support.graph import entity, state
from tests.support.locks import committing, until_somebody_waits
from tests.support.tenants import Caller


class Rows(NamedTuple):
    """One row of each kind, by id."""

    session: str
    project: str
    memory: str
    shared: str
    entity: str


class Case(NamedTuple):
    """A column that refers to another row, and how that row is deleted."""

    table: str
    key: str
    column: str
    parent: str
    delete: str

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column} by {self.delete.split('?')[0]}"


CASES = [
    Case("sessions", "session_id", "project_id", "project", "/projects/{0.project}?confirm=true"),
    Case("memories", "memory_id", "project_id", "project", "/projects/{0.project}?confirm=true"),
    Case("memories", "memory_id", "session_id", "session", "/sessions/{0.session}?confirm=true"),
    Case("memories", "memory_id", "superseded_by", "memory", "/memories/{0.memory}?hard=true"),
    # What the project shared goes with it; a memory of its own may have been replaced by that.
    Case("memories", "memory_id", "superseded_by", "shared", "/projects/{0.project}?confirm=true"),
    Case("graph_entities", "entity_id", "merged_into", "entity", "an undone split"),
]
PARENTS = {
    "project": ("projects", "project_id"),
    "session": ("sessions", "session_id"),
    "memory": ("memories", "memory_id"),
    "shared": ("memories", "memory_id"),
    "entity": ("graph_entities", "entity_id"),
}

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture
async def rows(client: AsyncClient) -> Rows:
    await append(client, "talk", "Hello.", user_id="ana")
    project = ok(await client.post("/projects", json={"project_name": "Bees"}), 201)["project_id"]
    ok(await client.put(f"/projects/{project}/members/ana", json={"role": "owner"}))
    own = await save(client, "She keeps bees.")
    shared = await save(client, "The bees need water.", scope="project", project_id=project)
    await state(client, "Ana", "keeps", "bees")
    bees = await entity(client, "bees")
    return Rows("talk", project, own["memory_id"], shared["memory_id"], bees["entity_id"])


def copied(case: Case, rows: Rows, tenant_id: str) -> str:
    """A statement that copies a row as one, with the id `copy`, that refers to the parent."""
    source = {"sessions": rows.session, "memories": rows.memory, "graph_entities": rows.entity}
    changes = {case.key: "copy", case.column: getattr(rows, case.parent)}
    changes |= {"memories": {"content_hash": "\\xff"}, "graph_entities": {"name_key": "copy"}}.get(
        case.table, {}
    )
    return (
        f"INSERT INTO {case.table} SELECT (jsonb_populate_record(t, "
        f"CAST('{json.dumps(changes)}' AS jsonb))).* FROM {case.table} t "
        f"WHERE t.tenant_id = '{tenant_id}' AND t.{case.key} = '{source[case.table]}'"
    )


async def reference_of(dsn: str, case: Case, tenant_id: str) -> list[str | None]:
    connection = await asyncpg.connect(dsn)
    await connection.execute("SET ROLE kemem_owner")
    found = await connection.fetch(
        f"SELECT {case.column} FROM {case.table} WHERE tenant_id = $1 AND {case.key} = 'copy'",
        tenant_id,
    )
    await connection.close()
    return [row[0] for row in found]


@every_case
async def test_deletion_clears_a_reference_that_was_being_written(
    case: Case, rows: Rows, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    async def by_request() -> None:
        ok(await client.delete(case.delete.format(rows)), 204 if "hard" in case.delete else 200)

    async def by_repository() -> None:
        async with runtime.database.begin(acme.tenant_id) as db:
            await ChangeRepository(db, Access(acme.tenant_id)).remove_entities([rows.entity])

    delete: Callable[[], Awaitable[None]] = by_request if "/" in case.delete else by_repository
    statement = copied(case, rows, acme.tenant_id)

    async with committing(dsn, statement) as holder:
        deletion = asyncio.create_task(delete())
        await until_somebody_waits(dsn, holder)
    await deletion

    assert await reference_of(dsn, case, acme.tenant_id) == [None]


@every_case
async def test_reference_to_a_row_that_is_being_deleted_is_refused(
    case: Case, rows: Rows, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    table, key = PARENTS[case.parent]
    statement = copied(case, rows, acme.tenant_id)

    async def refer() -> None:
        async with runtime.database.begin(acme.tenant_id) as db:
            await (await driver_of(db)).execute(statement)

    of_parent = f"WHERE tenant_id = '{acme.tenant_id}' AND {{}} = '{getattr(rows, case.parent)}'"
    referring_columns = {
        (one.table, one.column) for one in CASES if PARENTS[one.parent] == (table, key)
    }
    detach = "".join(
        f"UPDATE {child} SET {column} = NULL {of_parent.format(column)}; "
        for child, column in referring_columns
    )
    if case.parent == "project":
        detach = f"DELETE FROM memories {of_parent.format('scope_id')}; {detach}"
    gone = f"DELETE FROM {table} {of_parent.format(key)}"
    async with committing(dsn, detach + gone) as holder:
        referring = asyncio.create_task(refer())
        await until_somebody_waits(dsn, holder)
    # 503, with the advice to try again; the next try finds no such row.
    with pytest.raises(DatabaseBusyError):
        await referring

    assert await reference_of(dsn, case, acme.tenant_id) == []


async def test_session_in_a_project_that_is_being_deleted_is_refused_as_an_answer(
    rows: Rows, client: AsyncClient, acme: Caller, dsn: str
) -> None:
    gone = "DELETE FROM projects WHERE tenant_id = '{}' AND project_id = '{}'"
    body = {"session_id": "late", "user_id": "ana", "project_id": rows.project}
    ok(await client.delete(f"/memories/{rows.shared}", params={"hard": True}), 204)

    async with committing(dsn, gone.format(acme.tenant_id, rows.project)) as holder:
        opening = asyncio.create_task(client.post("/sessions", json=body))
        await until_somebody_waits(dsn, holder)

    # 503 names nothing as wrong and asks to try again, which then answers 404.
    assert (await opening).status_code in {404, 503}
    assert (await client.post("/sessions", json=body)).status_code == 404


def test_no_foreign_key_sets_a_column_to_null() -> None:
    actions = {
        str(key.ondelete)
        for table in metadata.tables.values()
        for key in table.foreign_key_constraints
    }

    assert actions == {"None", "CASCADE"}
