"""Merging, splitting, and taking both back to the byte."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.memory.graph.statements import RelationStatement, WriteResult
from app.memory.graph.writer import GraphWriter
from app.runtime import Runtime, utc_now
from tests.support.api import ok, problem, save
from tests.support.graph import ANA, entity, known, people, said, state, write
from tests.support.tenants import Caller
from tests.support.world import rows_of

Rows = set[tuple[str, str]]


@pytest.fixture(autouse=True)
async def _ana(client: AsyncClient) -> None:
    await people(client, "ana", "ben")


async def graph_rows(dsn: str, acme: Caller) -> Rows:
    return {
        row
        for row in await rows_of(dsn, acme.tenant_id)
        if row[0].startswith("graph_") and row[0] != "graph_changes"
    }


async def two_of_one(client: AsyncClient) -> tuple[str, str]:
    """One person in two entities, with aliases, mentions, relations on both sides and a past."""
    memory_id = (await save(client, "Li Ming likes green tea."))["memory_id"]
    await state(client, "李明", "likes", "tea", memory_ids=[memory_id], evidence=["m1"])
    await state(client, "Li Ming", "likes", "tea", memory_ids=[memory_id], evidence=["m2"])
    await state(client, "Li Ming", "lives_in", "Bonn", single=True)
    await state(client, "Li Ming", "lives_in", "Köln", single=True)
    await state(client, "Zoe", "knows", "Li Ming")
    await state(client, "李明", "called", "Li Ming")
    first, second = (await entity(client, "李明"), await entity(client, "Li Ming"))
    await client.post(f"/graph/entities/{second['entity_id']}/aliases", json={"alias": "Lee"})
    return first["entity_id"], second["entity_id"]


async def merge(client: AsyncClient, stays: str, *goes: str, **rest: Any) -> dict[str, Any]:
    path = f"/graph/entities/{stays}/merge"
    return ok(await client.post(path, json={"entity_ids": list(goes)} | rest))


class TestMerging:
    async def test_merge_moves_every_row_to_one_entity(self, client: AsyncClient) -> None:
        stays, goes = await two_of_one(client)

        change = await merge(client, stays, goes)

        assert change["entity_ids"] == [stays, goes]
        assert await known(client) == {
            ("李明", "likes", "tea"), ("李明", "lives_in", "Köln"), ("Zoe", "knows", "李明"),
        }  # fmt: skip
        [tea] = ok(await client.get("/graph/relations", params={"relation": "likes"}))["items"]
        assert tea["evidence"] == ["m1", "m2"]
        shown = ok(await client.get(f"/graph/entities/{stays}"))
        assert (set(shown["aliases"]), shown["mentions"]) == ({"Li Ming", "Lee"}, 1)
        assert (await state(client, "lee", "likes", "rice"))["source"]["name"] == "李明"
        gone = ok(await client.get(f"/graph/entities/{goes}"))
        assert gone["merged_into"] == stays
        patched = await client.patch(f"/graph/entities/{goes}", json={"name": "x"})
        assert problem(patched, 409, "entity_merged")["merged_into"] == stays

    async def test_undo_of_a_merge_restores_every_row_exactly(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        stays, goes = await two_of_one(client)
        before = await graph_rows(dsn, acme)
        change = await merge(client, stays, goes)
        assert await graph_rows(dsn, acme) != before

        undone = ok(await client.post(f"/graph/changes/{change['change_id']}/undo"))

        assert undone["undone_at"] is not None
        assert await graph_rows(dsn, acme) == before
        again = await client.post(f"/graph/changes/{change['change_id']}/undo")
        problem(again, 409, "change_undone")

    async def test_a_dry_run_counts_and_writes_nothing(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        stays, goes = await two_of_one(client)
        before = await graph_rows(dsn, acme)

        counted = await merge(client, stays, goes, dry_run=True)

        assert (counted["change_id"], counted["rows"]["entities"]) == (None, 1)
        assert await graph_rows(dsn, acme) == before
        assert ok(await client.get("/graph/changes"))["items"] == []

    async def test_two_merges_are_undone_in_order(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        for name in "abc":
            await state(client, name, "likes", "tea")
        a, b, c = [(await entity(client, name))["entity_id"] for name in "abc"]
        start = await graph_rows(dsn, acme)
        first = await merge(client, b, a)
        middle = await graph_rows(dsn, acme)
        second = await merge(client, c, b)

        early = await client.post(f"/graph/changes/{first['change_id']}/undo")
        assert problem(early, 409, "changed_since")["rows"]
        ok(await client.post(f"/graph/changes/{second['change_id']}/undo"))
        assert await graph_rows(dsn, acme) == middle
        ok(await client.post(f"/graph/changes/{first['change_id']}/undo"))
        assert await graph_rows(dsn, acme) == start

    async def test_undo_refuses_to_overwrite_later_changes(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        stays, goes = await two_of_one(client)
        change = await merge(client, stays, goes)
        [row] = ok(await client.get("/graph/relations", params={"relation": "lives_in"}))["items"]
        ok(
            await client.patch(
                f"/graph/relations/{row['relation_id']}", json={"destination": "Mainz"}
            )
        )
        before = await graph_rows(dsn, acme)

        refused = await client.post(f"/graph/changes/{change['change_id']}/undo")

        rows = problem(refused, 409, "changed_since")["rows"]
        assert rows == [f"relation {row['relation_id']}"]
        assert await graph_rows(dsn, acme) == before

    async def test_merge_of_unrelated_owners_is_refused(self, client: AsyncClient) -> None:
        stays, goes = await two_of_one(client)
        bens = await state(client, "Li Ming", "likes", "rice", user_id="ben")
        path = f"/graph/entities/{stays}/merge"

        async def refused(*ids: str, status: int = 422, code: str) -> None:
            problem(await client.post(path, json={"entity_ids": list(ids)}), status, code)

        await refused(bens["source"]["entity_id"], code="different_owners")
        await refused(stays, code="same_entity")
        await refused("ent_none", status=404, code="entity_not_found")
        await refused(code="invalid_request")
        await merge(client, stays, goes)
        await refused(goes, status=409, code="entity_merged")

    async def test_simultaneous_opposite_merges_leave_one_entity(self, client: AsyncClient) -> None:
        stays, goes = await two_of_one(client)

        answers = await asyncio.gather(
            client.post(f"/graph/entities/{stays}/merge", json={"entity_ids": [goes]}),
            client.post(f"/graph/entities/{goes}/merge", json={"entity_ids": [stays]}),
        )

        assert sorted(one.status_code for one in answers) == [200, 409]


class TestSplitting:
    async def test_split_and_its_undo_restore_every_row_exactly(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        memory_id = (await save(client, "Sam plays chess."))["memory_id"]
        chess = await state(client, "Sam", "plays", "chess", memory_ids=[memory_id])
        await state(client, "Sam", "plays", "golf")
        old = chess["source"]["entity_id"]
        await client.post(f"/graph/entities/{old}/aliases", json={"alias": "Samantha"})
        before = await graph_rows(dsn, acme)
        body = {
            "name": "Samantha",
            "relation_ids": [chess["relation_id"]],
            "memory_ids": [memory_id],
        }

        change = ok(await client.post(f"/graph/entities/{old}/split", json=body))

        assert await known(client) == {("Samantha", "plays", "chess"), ("Sam", "plays", "golf")}
        new = ok(await client.get(f"/graph/entities/{change['entity_ids'][1]}"))
        assert (new["name"], new["mentions"], new["aliases"]) == ("Samantha", 1, [])
        ok(await client.post(f"/graph/changes/{change['change_id']}/undo"))
        assert await graph_rows(dsn, acme) == before

    async def test_undo_of_a_split_keeps_rows_added_since(self, client: AsyncClient) -> None:
        chess = await state(client, "Sam", "plays", "chess")
        path = f"/graph/entities/{chess['source']['entity_id']}/split"
        change = ok(await client.post(path, json={"name": "Samantha"}))
        await state(client, "Samantha", "plays", "golf")

        refused = await client.post(f"/graph/changes/{change['change_id']}/undo")

        assert problem(refused, 409, "changed_since")["rows"] == [
            f"entity {change['entity_ids'][1]}"
        ]

    async def test_split_of_rows_of_another_entity_is_refused(self, client: AsyncClient) -> None:
        chess = await state(client, "Sam", "plays", "chess")
        path = f"/graph/entities/{chess['source']['entity_id']}/split"

        for wrong in (
            {"relation_ids": ["rel_none"]},
            {"memory_ids": ["mem_none"]},
            {"aliases": ["Zoe"]},
        ):
            body = {"name": "Samantha"} | wrong
            problem(await client.post(path, json=body), 422, "not_of_entity")
        problem(await client.post(path, json={"name": "chess"}), 409, "entity_exists")


class TestRaces:
    async def test_two_runs_make_one_entity(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        """Pain 23, with two connections at once."""
        now = utc_now()
        runs = [
            write(runtime, acme.tenant_id, [said("李明", "likes", f"thing {n}")], now=now)
            for n in range(4)
        ]

        written = await asyncio.gather(*runs)

        assert sum(made.entities_created for made in written) == 5
        rows = ok(await client.get("/graph/entities", params={"q": "李明"}))["items"]
        assert len(rows) == 1

    async def test_unique_index_alone_prevents_a_second_entity(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        """Two connections without the bucket's lock: the second waits for the first."""
        first = asyncio.Event()
        written = await asyncio.gather(
            unlocked(runtime, acme, said("Ana", "likes", "tea"), done=first, linger=0.3),
            unlocked(runtime, acme, said("ANA", "likes", "coffee"), after=first),
        )

        assert [one.entities_created for one in written] == [2, 1]
        rows = ok(await client.get("/graph/entities", params={"q": "ana"}))["items"]
        assert len(rows) == 1


async def unlocked(
    runtime: Runtime,
    acme: Caller,
    statement: RelationStatement,
    *,
    after: asyncio.Event | None = None,
    done: asyncio.Event | None = None,
    linger: float = 0,
) -> WriteResult:
    """Write as a run that takes no lock."""
    async with runtime.database.begin(acme.tenant_id) as db:
        if after is not None:
            await after.wait()
        writing = GraphWriter(db, Access(acme.tenant_id), actor=None, job_id=None, now=utc_now())
        written = await writing.store(ANA, [statement])
        if done is not None:
            done.set()
        await asyncio.sleep(linger)
        return written
