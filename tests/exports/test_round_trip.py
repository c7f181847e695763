"""What goes out comes in again, to the byte: a tenant, a user, an agent, a project."""

import json
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.governance.exports.scope_sql import NOUNS
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.exports.exports_support import end_of, exported, imported, rows_in
from tests.exports.further_rows import add_further_rows
from tests.support.databases import migrated_database, served
from tests.support.model_service import app_of
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.world import World, build_world, remember


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    """A database without anybody else's worker, which would do what is owed to the world."""
    return await migrated_database(postgres, "round_trips")


@pytest.fixture(scope="module")
async def runtime(dsn: str, settings: Settings) -> AsyncIterator[Runtime]:
    async with open_runtime(settings, served(dsn)) as opened:
        yield opened


@pytest.fixture(scope="module")
async def app(runtime: Runtime) -> AsyncIterator[FastAPI]:
    async with app_of(runtime) as opened:
        yield opened


@pytest.fixture(scope="module")
async def world(app: FastAPI, runtime: Runtime, dsn: str) -> World:
    """A tenant with a row of every kind; nobody here changes any of them."""
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as client:
        world = await build_world(runtime, client, owner)
        for text in ("She lives in Munich now.", "She lives in Bonn now.", "She has moved again."):
            await remember(client, text, user_id="ana")
    await add_further_rows(dsn, owner.tenant_id, world.ids["memory_id"])
    return world


SCOPES = (
    {},
    {"user_id": "ana"},
    {"user_id": "ben"},
    {"agent_id": "helper"},
    {"agent_id": "rival"},
    {"project_id": "apollo"},
)


@pytest.mark.parametrize(
    ("scope", "size", "vectors"),
    [({}, 1, True), ({}, 50, False), *((scope, 1_000, True) for scope in SCOPES)],
    ids=str,
)
async def test_a_round_trip_is_equal_to_the_byte(
    app: FastAPI, world: World, stranger: AsyncClient, scope: dict, size: int, vectors: bool
) -> None:
    async with client_of(app, world.owner.key) as client:
        out = await exported(client, **scope, vectors=vectors)

    first = await imported(stranger, out, size=size)
    again = await exported(stranger, **scope, vectors=vectors)
    second = await imported(stranger, out, size=size)

    rows = len(out) - 2
    assert first == {"inserted": rows, "unchanged": 0, "skipped": 0}
    assert again[1:-1] == out[1:-1]
    assert end_of(again) == end_of(out)
    assert second == {"inserted": 0, "unchanged": rows, "skipped": 0}


async def test_every_kind_is_in_the_export_of_a_tenant(app: FastAPI, world: World) -> None:
    async with client_of(app, world.owner.key) as client:
        out = await exported(client)

    assert {one["type"] for one in rows_in(out)} == set(NOUNS.values())
    assert json.loads(out[0])["kinds"] == list(NOUNS.values())


async def test_what_was_imported_is_exported_for_each_scope(
    app: FastAPI, world: World, stranger: AsyncClient
) -> None:
    async with client_of(app, world.owner.key) as client:
        whole = await exported(client)
        narrow = [await exported(client, **scope) for scope in SCOPES]

    await imported(stranger, whole)

    for scope, lines in zip(SCOPES, narrow, strict=True):
        assert (await exported(stranger, **scope))[1:-1] == lines[1:-1]
