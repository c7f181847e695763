"""The statements that the service really sends, so that a cluster could shard by the tenant.

A socket before the server hears a walk over every operation, with several keys, and a worker that
does what the walk has ordered.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Final

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.governance.tables import TABLES
from app.platform.database.roles import APP, DISPATCH
from app.platform.embedded.server import EmbeddedPostgres
from app.platform.jobs.dispatch import CLAIM, EXTEND, FINISH_MANY
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from app.worker import worker_of
from tests.support.api import execute
from tests.support.databases import migrated_database, served
from tests.support.operations import FURTHER, OPERATIONS, make
from tests.support.patience import PATIENCE
from tests.support.service import client_of, service
from tests.support.statements import clock_readings, is_framed, parsed, tables_in, tenant_gaps
from tests.support.tenants import make_key, make_tenant
from tests.support.wire import Sent, overheard
from tests.support.world import World, build_world, remember

OWNED: Final = frozenset(table.__tablename__ for table in TABLES)

LEAST_STATEMENTS: Final = {"short": 300, "whole": 900}
"""Different ones about tenants' tables. With fewer the walk has gone blind somewhere."""

# Claims, heartbeats and batches of finished jobs: one statement each, across tenants, which no
# node of a cluster could run alone; leases are measured by PostgreSQL's clock, and to ask for it
# first would cost each of them a round trip.
READ_THE_CLOCK: Final = {CLAIM, EXTEND, FINISH_MANY}

# But for what waits for another reason than its hour, and what is owed to webhooks that nobody has.
_OWED = """
status IN ('pending', 'running') AND deferred_reason IS NULL
AND kind NOT IN ('deliver', 'nobody_does_this')
"""
_HURRY = f"UPDATE jobs SET due_at = now() WHERE status = 'pending' AND {_OWED}"
_LEFT = f"SELECT kind, status, attempts FROM jobs WHERE {_OWED}"


@pytest.fixture(scope="module", params=["short", pytest.param("whole", marks=pytest.mark.slow)])
def walk(request: pytest.FixtureRequest) -> str:
    """How far to walk: `short` writes a row of every kind and reads; `whole` does everything."""
    return request.param


@pytest.fixture(scope="module")
async def sent(postgres: EmbeddedPostgres, settings: Settings, walk: str) -> list[Sent]:
    """Every statement of the walk about a tenants' table, each once."""
    dsn = await migrated_database(postgres, f"statements_{walk}")
    async with overheard(dsn) as (transcript, way), AsyncExitStack() as stack:
        app = await stack.enter_async_context(service(way))
        runtime = await stack.enter_async_context(open_runtime(settings, served(way)))
        await (_walk(app, runtime, dsn, way) if walk == "whole" else _walk_shortly(app, runtime))
    return [one for one in transcript.sent() if _owned(one)]


def _owned(one: Sent) -> set[str]:
    return {name for statement in parsed(one.text) for name in tables_in(statement)} & OWNED


async def _walk_shortly(app: FastAPI, runtime: Runtime) -> None:
    owner = await make_tenant(runtime)
    key = await make_key(runtime, owner.tenant_id, "read", "write", "admin", "operator")
    async with client_of(app, key.key) as client:
        world = await build_world(runtime, client, owner)
        await _call(client, world, reads_only=True)


async def _walk(app: FastAPI, runtime: Runtime, dsn: str, way: str) -> None:
    owner = await make_tenant(runtime)
    everything = await make_key(runtime, owner.tenant_id, "read", "write", "admin", "operator")
    async with client_of(app, everything.key) as client:
        world = await build_world(runtime, client, owner)
        for path, body in (
            ("/users", {"user_id": "own-user", "agent_id": "rival"}),
            ("/projects", {"project_id": "own-project", "project_name": "P"}),
            ("/sessions", {"session_id": "own-session", "user_id": "own-user"}),
        ):
            await client.post(path, json=body)
        await _hide(client)
        for restriction in ({"user_id": "ana"}, {"agent_id": "helper"}):
            key = await make_key(runtime, owner.tenant_id, "write", **restriction)
            async with client_of(app, key.key) as restricted:
                await _call(restricted, world, reads_only=True)
        await _call(client, world, reads_only=False)
        await _work(runtime, dsn, way)
        await _import(runtime, app, (await client.get("/export")).content)
        await _call(client, world, reads_only=False, ends=True)
        await _work(runtime, dsn, way)
        assert (await client.get("/users")).is_success


async def _hide(client: AsyncClient) -> None:
    """Delete memories softly, one and many; the walk deletes for good."""
    for text in ("She keeps goats.", "She sold the boat."):
        memory_id = await remember(client, text, user_id="own-user")
    assert (await client.delete(f"/memories/{memory_id}")).is_success
    many = {"user_id": "own-user", "confirm": True}
    assert (await client.post("/memories/delete", json=many)).is_success


async def _import(runtime: Runtime, app: FastAPI, exported: bytes) -> None:
    """Write everything into a second tenant, and once more over itself."""
    other = await make_tenant(runtime)
    async with client_of(app, other.key) as client:
        for _ in range(2):
            assert (await client.post("/import", content=exported)).is_success


def _ends(name: str) -> bool:
    """Whether an operation leaves less for the others to do."""
    disables = (OPERATIONS | FURTHER)[name].body == {"status": "disabled"}
    return disables or name.startswith("DELETE") or "/delete" in name or "/prune" in name


async def _call(client: AsyncClient, world: World, *, reads_only: bool, ends: bool = False) -> None:
    """Call operations once: those that end something, the deepest first, or all others."""
    calls = OPERATIONS | FURTHER
    names = [
        name
        for name, call in calls.items()
        if _ends(name) == ends and not (reads_only and call.scope != "read")
    ]
    for name in sorted(names, key=lambda name: -name.count("/") if ends else 0):
        response = await make(client, name, calls[name], world.ids)
        assert response.status_code < 500, (name, response.text)


async def _work(runtime: Runtime, dsn: str, way: str) -> None:
    """Do what is owed, and what is owed from time to time, without waiting for its hour."""
    worker = worker_of(runtime, way)
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(PATIENCE):
            while await execute(dsn, _LEFT):
                await execute(dsn, _HURRY)
                await asyncio.sleep(0.1)
    finally:
        await worker.drain(timedelta(seconds=10))
        await running


def test_walk_hears_enough_statements(
    sent: list[Sent], walk: str, record_property: Callable[[str, object], None]
) -> None:
    texts = {one.text for one in sent}
    reached = {name for one in sent for name in _owned(one)}

    record_property("different_statements", len(texts))
    sys.stdout.write(f"{len(texts)} different statements about {len(reached)} tables\n")
    assert len(texts) >= LEAST_STATEMENTS[walk], f"only {len(texts)}"
    assert reached == OWNED
    assert {one.role for one in sent} == {APP, DISPATCH}


def test_walk_hears_a_context_look_for_pieces_of_messages(sent: list[Sent], walk: str) -> None:
    found = [one.text for one in sent if "unnest(messages.piece_terms" in one.text]

    # A context reads them in one statement with the best memories; a short walk has none of both.
    assert walk == "short" or any("is_first" in text for text in found)
    for text in found:
        [statement] = parsed(text)
        # The messages, their sessions, and the request before a reply.
        beside = {"memories"} if "is_first" in text else set()
        assert tables_in(statement) == {"messages", "sessions", *beside}
        assert tenant_gaps(statement, OWNED) == []


def test_tenant_is_a_parameter_for_every_table(sent: list[Sent]) -> None:
    """But for those who look across tenants, as a role that may see a few columns."""
    gaps = {
        one.text: found
        for one in sent
        if one.role != DISPATCH
        for statement in parsed(one.text)
        if (found := tenant_gaps(statement, OWNED))
    }

    assert not gaps, json.dumps(gaps, indent=1)


def test_tenant_is_set_before_the_first_statement(sent: list[Sent]) -> None:
    late = [
        one.text
        for one in sent
        if one.role != DISPATCH
        and not one.tenant_known
        and not all(is_framed(statement) for statement in parsed(one.text))
    ]

    assert not late, json.dumps(late, indent=1)


def test_time_is_a_parameter_where_rows_change(sent: list[Sent]) -> None:
    read = {
        one.text: found
        for one in sent
        if one.text not in READ_THE_CLOCK
        for statement in parsed(one.text)
        if (found := clock_readings(statement))
    }

    assert not read, json.dumps(read, indent=1)


def test_exceptions_are_needed() -> None:
    assert all(clock_readings(parsed(text)[0]) for text in READ_THE_CLOCK)
