"""What a run writes: names joined by nearness, relations that end with their memories, and the
memories around a name.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.language.text.names import name_key
from app.memory.graph.neighbourhood_repository import NearMemory
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import (
    NEAR,
    GraphOwner,
    NamedEntity,
    RelationStatement,
    WriteResult,
)
from app.memory.graph.writer import GraphWriter
from app.memory.memories.repository import MemoryRepository
from app.runtime import Runtime
from tests.support.api import ok, save
from tests.support.graph import ANA, entity, known, people, said, write
from tests.support.tenants import Caller

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
BEN = GraphOwner("user", "ben", "ben", None, None)


@pytest.fixture(autouse=True)
async def _ana(client: AsyncClient) -> None:
    await people(client, "ana", "ben")


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder.load()


@asynccontextmanager
async def writing(
    runtime: Runtime, caller: Caller, *, now: datetime = NOW, access: Access | None = None
) -> AsyncIterator[GraphWriter]:
    async with runtime.database.begin(caller.tenant_id) as db:
        whole = access or Access(caller.tenant_id)
        await MemoryRepository(db, whole).lock_bucket(ANA.scope, ANA.scope_id)
        yield GraphWriter(db, whole, actor=None, job_id=None, now=now)


class TestNearNames:
    @pytest.fixture
    def told(self, runtime: Runtime, acme: Caller, embedder: WordLlamaEmbedder) -> Any:
        async def tell(*names: str, model: str | None = None, kind: str = "product") -> WriteResult:
            """A run in which Ana likes things, whose names were embedded."""
            vectors = dict(
                zip(map(name_key, names), await embedder.embed(list(names)), strict=True)
            )
            statements = [
                RelationStatement(NamedEntity("Ana"), "likes", NamedEntity(name, kind))
                for name in names
            ]
            return await write(
                runtime, acme.tenant_id, statements, now=NOW, vectors=vectors,
                embedding_model=model or embedder.name,
            )  # fmt: skip

        return tell

    @pytest.mark.parametrize(
        ("first", "second"),
        [("Acme, Inc.", "Acme Inc"), ("coffee shop", "coffee shops"), ("北京-大学", "北京大学")],
    )
    async def test_other_spelling_becomes_an_alias(
        self, client: AsyncClient, told: Any, first: str, second: str
    ) -> None:
        await told(first)
        written = await told(second)

        assert (written.entities_created, written.relations_added) == (0, 0)
        assert written.relations_confirmed == 1
        assert (await entity(client, first))["aliases"] == [second]
        assert await known(client) == {("Ana", "likes", first)}

    @pytest.mark.parametrize(
        ("first", "second"),
        [("Boeing 737", "Boeing 747"), ("John Smith", "Jane Smith"), ("李明", "李敏")],
    )
    async def test_different_name_stays_separate_however_similar(
        self, client: AsyncClient, told: Any, first: str, second: str
    ) -> None:
        await told(first)
        written = await told(second)

        assert written.entities_created == 1
        assert await known(client) == {("Ana", "likes", first), ("Ana", "likes", second)}
        assert (await entity(client, first))["aliases"] == []

    async def test_nearest_entity_is_read_from_stored_vectors(
        self, runtime: Runtime, acme: Caller, told: Any, embedder: WordLlamaEmbedder
    ) -> None:
        await told("Boeing 737", "green tea")
        [vector] = await embedder.embed(["Boeing 747"])

        async def nearest(kind: str = "product", model: str = embedder.name) -> dict[str, float]:
            async with runtime.database.begin(acme.tenant_id) as db:
                rows = await EntityRepository(db, Access(acme.tenant_id)).nearest(
                    ANA, kind, model, vector, limit=5
                )
                return {row.name: distance for row, distance in rows}

        found = await nearest()
        # So it is the check of the names, and not the distance, that keeps the two apart.
        assert list(found) == ["Boeing 737", "green tea"]
        assert found["Boeing 737"] < NEAR < found["green tea"]
        assert await nearest(kind="person") == {}
        assert await nearest(model="another") == {}

    async def test_names_of_another_type_or_embedder_are_not_compared(
        self, client: AsyncClient, told: Any
    ) -> None:
        await told("Acme, Inc.")

        assert (await told("Acme Inc", model="another")).entities_created == 1
        assert (await told("ACME-Inc", kind="place")).entities_created == 1

    async def test_a_name_without_a_vector_is_matched_by_its_key_alone(
        self, runtime: Runtime, acme: Caller, told: Any
    ) -> None:
        await told("Acme, Inc.")

        again = [said("Ana", "likes", "ACME,  inc."), said("Ana", "likes", "Acme Inc")]
        written = await write(runtime, acme.tenant_id, again, now=NOW)
        assert (written.entities_created, written.entities_matched) == (1, 2)

    async def test_entities_of_other_buckets_are_not_compared(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, embedder: WordLlamaEmbedder
    ) -> None:
        for owner, name in ((ANA, "Acme, Inc."), (BEN, "Acme Inc")):
            [vector] = await embedder.embed([name])
            written = await write(
                runtime, acme.tenant_id, [said("She", "likes", name)], now=NOW, owner=owner,
                embedding_model=embedder.name, vectors={name_key(name): vector},
            )  # fmt: skip
            assert written.entities_created == 2


class TestCloseOf:
    @pytest.fixture
    async def memory_ids(self, client: AsyncClient) -> list[str]:
        texts = ("Ana lives in Bonn.", "Ana keeps three bees.")
        return [(await save(client, text))["memory_id"] for text in texts]

    async def test_relation_supported_by_these_memories_alone_ends(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, memory_ids: list[str]
    ) -> None:
        first, second = memory_ids
        statements = [
            said("Ana", "lives_in", "Bonn", memory_ids=(first,)),
            said("Ana", "keeps", "bees", memory_ids=(first, second)),
            said("Ana", "likes", "tea"),
        ]
        await write(runtime, acme.tenant_id, statements, now=NOW - DAY)

        async with writing(runtime, acme) as graph:
            assert await graph.close_of([first], "superseded") == 1
            # Again there is nothing left to end.
            assert await graph.close_of([first], "superseded") == 0

        still = {("Ana", "keeps", "bees"), ("Ana", "likes", "tea")}
        assert await known(client, as_of=NOW.isoformat()) == still
        before = (NOW - DAY / 2).isoformat()
        assert ("Ana", "lives_in", "Bonn") in await known(client, as_of=before)
        [ended] = [
            one
            for one in ok(await client.get("/graph/relations?include_closed=true"))["items"]
            if one["relation"] == "lives_in"
        ]
        assert (ended["reason"], ended["version"]) == ("superseded", 2)

        async with writing(runtime, acme) as graph:
            assert await graph.close_of([first, second], "superseded") == 1
        assert await known(client, as_of=NOW.isoformat()) == {("Ana", "likes", "tea")}

    async def test_untrue_relation_is_withdrawn(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, memory_ids: list[str]
    ) -> None:
        statement = said("Ana", "lives_in", "Bonn", memory_ids=(memory_ids[0],))
        await write(runtime, acme.tenant_id, [statement], now=NOW - DAY)

        async with writing(runtime, acme) as graph:
            assert await graph.close_of(memory_ids, "deleted", withdraw=True) == 1

        assert await known(client, include_closed=True) == set()

    async def test_future_relation_ends_where_it_begins(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, memory_ids: list[str]
    ) -> None:
        later = said(
            "Ana", "lives_in", "Bonn", memory_ids=(memory_ids[0],), valid_from=NOW + 9 * DAY
        )
        await write(runtime, acme.tenant_id, [later], now=NOW - DAY)

        async with writing(runtime, acme) as graph:
            assert await graph.close_of(memory_ids, "superseded") == 1

        assert await known(client, as_of=(NOW + 10 * DAY).isoformat()) == set()

    async def test_close_without_memories_ends_nothing(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        await write(runtime, acme.tenant_id, [said("Ana", "likes", "tea")], now=NOW - DAY)

        async with writing(runtime, acme) as graph:
            assert await graph.close_of([], "superseded") == 0
        assert await known(client) == {("Ana", "likes", "tea")}


class TestNear:
    @pytest.fixture
    async def memory_ids(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> dict[str, str]:
        """A chain of four, each relation of a memory of its own."""
        chain = ["李明", "北京大学", "Beijing", "China"]
        made = {}
        for source, destination in pairwise(chain):
            saved = await save(client, f"{source} is at {destination}.")
            made[destination] = saved["memory_id"]
            one = said(source, "is_at", destination, memory_ids=(saved["memory_id"],))
            await write(runtime, acme.tenant_id, [one], now=NOW - DAY)
        return made

    async def near(
        self, runtime: Runtime, caller: Caller, *names: str, **rest: Any
    ) -> list[tuple[str, int]]:
        access = rest.pop("access", None)
        async with writing(runtime, caller, access=access) as graph:
            found = await graph.near([name_key(name) for name in names], **rest)
        assert all(isinstance(one, NearMemory) for one in found)
        return [(one.memory_id, one.hops) for one in found]

    async def test_memories_are_ordered_by_steps(
        self, runtime: Runtime, acme: Caller, memory_ids: dict[str, str]
    ) -> None:
        first, second, third = memory_ids.values()

        assert await self.near(runtime, acme, "李明", depth=0) == [(first, 0)]
        assert await self.near(runtime, acme, "李明") == [(first, 0), (second, 1)]
        assert await self.near(runtime, acme, "李明", depth=2) == [
            (first, 0), (second, 1), (third, 2),
        ]  # fmt: skip
        assert await self.near(runtime, acme, "李明", depth=9, limit=2) == [(first, 0), (second, 1)]
        assert await self.near(runtime, acme, "CHINA", depth=0) == [(third, 0)]
        assert await self.near(runtime, acme, "nobody") == []
        assert await self.near(runtime, acme) == []

    async def test_alias_is_followed_and_ended_relation_is_not(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, memory_ids: dict[str, str]
    ) -> None:
        first, second, _ = memory_ids.values()
        li = (await entity(client, "李明"))["entity_id"]
        ok(await client.post(f"/graph/entities/{li}/aliases", json={"alias": "Li Ming"}))
        assert await self.near(runtime, acme, "Li Ming") == [(first, 0), (second, 1)]

        async with writing(runtime, acme) as graph:
            await graph.close_of([first], "superseded")
        assert await self.near(runtime, acme, "Li Ming") == [(first, 0)]
        before = NOW - DAY / 2
        assert len(await self.near(runtime, acme, "Li Ming", as_of=before)) == 2

    async def test_a_deleted_memory_is_not_near(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, memory_ids: dict[str, str]
    ) -> None:
        first, second, _ = memory_ids.values()
        assert (await client.delete(f"/memories/{second}")).status_code == 204

        found = await self.near(runtime, acme, "李明", depth=2)
        assert (first, 0) in found
        assert second not in dict(found)

    async def test_other_users_reach_no_memory(
        self, runtime: Runtime, acme: Caller, memory_ids: dict[str, str]
    ) -> None:
        ben = Access(acme.tenant_id, user_id="ben")

        assert await self.near(runtime, acme, "李明", depth=3, access=ben) == []
        assert memory_ids
