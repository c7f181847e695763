"""Undoing a merge that was imported: in the caller's tenant, and only what is of its graph."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from httpx import AsyncClient

from tests.exports.exports_support import exported, imported, rows_in
from tests.support.api import ok, problem, save
from tests.support.graph import entity, people, state
from tests.support.tenants import Caller
from tests.support.world import rows_of

Rows = dict[str, Any]


@pytest.fixture(autouse=True)
async def _ana(client: AsyncClient) -> None:
    await people(client, "ana", "ben")


async def merged(client: AsyncClient) -> str:
    """A merge that moved an alias, a mention and relations, and folded two; its id."""
    memory_id = (await save(client, "Li Ming likes green tea."))["memory_id"]
    for name in ("李明", "Li Ming"):
        await state(client, name, "likes", "tea", memory_ids=[memory_id])
    await state(client, "Li Ming", "lives_in", "Bonn")
    await state(client, "Zoe", "likes", "rice", user_id="ben")
    stays, goes = [(await entity(client, name))["entity_id"] for name in ("李明", "Li Ming")]
    ok(await client.post(f"/graph/entities/{goes}/aliases", json={"alias": "Lee"}))
    path = f"/graph/entities/{stays}/merge"
    change_id: str = ok(await client.post(path, json={"entity_ids": [goes]}))["change_id"]
    return change_id


def changed(lines: list[bytes], change: Callable[[Rows], None]) -> list[bytes]:
    """An export in which somebody has changed the rows of its merge."""
    found = []
    for line in lines:
        one = json.loads(line)
        if one["type"] == "graph_change":
            change(one["row"])
        found.append(json.dumps(one).encode())
    return found


async def graph_of(dsn: str, tenant_id: str) -> set[tuple[str, str]]:
    return {
        (table, row.replace(tenant_id, "<tenant>"))
        for table, row in await rows_of(dsn, tenant_id)
        if table.startswith("graph_") and table != "graph_changes"
    }


def undo(change_id: str) -> str:
    return f"/graph/changes/{change_id}/undo"


async def test_rows_of_a_change_name_no_tenant(client: AsyncClient, acme: Caller) -> None:
    await merged(client)

    rows = rows_in(await exported(client))

    [change] = [one["row"] for one in rows if one["type"] == "graph_change"]
    assert change["before"]["graph_relations"]
    assert change["after"]["graph_aliases"]
    assert acme.tenant_id not in json.dumps(rows)


@pytest.mark.parametrize("of_an_older_release", [False, True])
async def test_imported_change_can_be_undone(
    client: AsyncClient,
    stranger: AsyncClient,
    other: Caller,
    acme: Caller,
    dsn: str,
    of_an_older_release: bool,
) -> None:
    change_id = await merged(client)

    def name_the_tenant(row: Rows) -> None:
        for side in ("before", "after"):
            for each in row[side].values():
                for one in each:
                    one["tenant_id"] = acme.tenant_id

    lines = await exported(client)
    if of_an_older_release:
        lines = changed(lines, name_the_tenant)
    await imported(stranger, lines)
    here = await graph_of(dsn, acme.tenant_id)

    ok(await stranger.post(undo(change_id)))

    there = await graph_of(dsn, other.tenant_id)
    assert await graph_of(dsn, acme.tenant_id) == here != there
    ok(await client.post(undo(change_id)))
    assert await graph_of(dsn, acme.tenant_id) == there


def _of_another_user(row: Rows) -> None:
    row["before"]["graph_relations"][0] |= {"scope_id": "ben", "user_id": "ben"}


def _another_table(row: Rows) -> None:
    row["before"]["memories"] = []


def _no_rows(row: Rows) -> None:
    row["before"] = ["rows"]


def _another_column(row: Rows) -> None:
    row["before"]["graph_aliases"][0]["colour"] = "red"


def _without_a_key(row: Rows) -> None:
    del row["after"]["graph_aliases"][0]["alias_key"]


def _unreadable(row: Rows) -> None:
    row["before"]["graph_relations"][0]["confidence"] = "high"


def _not_allowed(row: Rows) -> None:
    row["before"]["graph_relations"][0]["confidence"] = 7


def _merged_into_a_list(row: Rows) -> None:
    row["after"]["graph_entities"][0]["merged_into"] = ["x"]


@pytest.mark.parametrize(
    "change",
    [
        _of_another_user, _another_table, _no_rows, _another_column, _without_a_key,
        _unreadable, _not_allowed, _merged_into_a_list,
    ],
)  # fmt: skip
async def test_rows_of_another_graph_are_not_written(
    client: AsyncClient,
    stranger: AsyncClient,
    other: Caller,
    dsn: str,
    change: Callable[[Rows], None],
) -> None:
    change_id = await merged(client)
    await imported(stranger, changed(await exported(client), change))
    before = await rows_of(dsn, other.tenant_id)

    problem(await stranger.post(undo(change_id)), 409, "invalid_change")

    assert await rows_of(dsn, other.tenant_id) == before
    assert ok(await stranger.get("/graph/changes"))["items"][0]["undone_at"] is None


async def test_entity_of_another_owner_is_not_changed(
    client: AsyncClient, stranger: AsyncClient, other: Caller, dsn: str
) -> None:
    change_id = await merged(client)
    bens = (await entity(client, "Zoe"))["entity_id"]

    def join(row: Rows) -> None:
        row["before"]["graph_aliases"][0]["entity_id"] = bens

    await imported(stranger, changed(await exported(client), join))
    before = await rows_of(dsn, other.tenant_id)

    refused = problem(await stranger.post(undo(change_id)), 409, "changed_since")

    assert f"entity {bens}" in refused["rows"]
    assert await rows_of(dsn, other.tenant_id) == before


async def test_undo_names_a_memory_that_is_gone(client: AsyncClient) -> None:
    """Of two mentions by one memory a merge keeps one; the other cannot come back without it."""
    change_id = await merged(client)
    [memory] = ok(await client.get("/memories", params={"user_id": "ana"}))["items"]
    ok(await client.delete(f"/memories/{memory['memory_id']}", params={"hard": "true"}), 204)

    refused = await client.post(undo(change_id))

    assert refused.status_code == 409
    assert refused.json()["code"] in {"invalid_change", "changed_since"}
