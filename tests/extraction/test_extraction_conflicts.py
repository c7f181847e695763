"""In doubt both stay: links between memories that may contradict each other, and what ends them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from httpx import AsyncClient

from app.language.llm.reconciler import ReconcileDecision
from app.memory.memories.conflict_repository import MOST
from app.runtime import Runtime
from tests.support.api import append, every_page, execute, ok, save, search
from tests.support.conflicts import FARO, LISBON, PORTO, Doubting, conflicts, in_doubt, tell
from tests.support.locks import holding, until_somebody_waits
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.working import extracted, working


@pytest.fixture(scope="module")
def reconciler() -> Doubting:
    return Doubting()


@pytest.fixture(scope="module")
async def served(runtime: Runtime, reconciler: Doubting) -> AsyncIterator[Any]:
    async with in_doubt(runtime, reconciler) as both:
        yield both


@pytest.fixture
async def client(served: Any, reconciler: Doubting) -> AsyncIterator[AsyncClient]:
    app, runtime = served
    reconciler.scripted.clear()
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as opened:
        opened.tenant_id = owner.tenant_id
        yield opened


async def lisbon_and_porto(client: AsyncClient) -> tuple[dict[str, Any], dict[str, Any]]:
    """The older and the newer of two in conflict."""
    [older] = await tell(client, LISBON)
    [newer] = await tell(client, PORTO)
    return older, newer


async def history(client: AsyncClient, memory: dict[str, Any]) -> list[dict[str, Any]]:
    return await every_page(client, f"/memories/{memory['memory_id']}/history")


class TestWriting:
    async def test_both_stay_and_name_each_other(self, client: AsyncClient) -> None:
        [older] = await tell(client, LISBON)
        [newer] = await tell(client, PORTO)

        assert older["conflicts_with"] == []
        assert newer["conflicts_with"] == [older["memory_id"]]
        assert newer["newer_conflicts"] == []
        rows = {row["content"]: row for row in await every_page(client, "/memories", user_id="ana")}
        assert rows.keys() == {LISBON, PORTO}
        assert rows[LISBON]["conflicts_with"] == [newer["memory_id"]]
        assert rows[LISBON]["newer_conflicts"] == [newer["memory_id"]]
        assert rows[PORTO]["conflicts_with"] == [older["memory_id"]]

    async def test_session_that_is_read_links_them(
        self, client: AsyncClient, served: Any, dsn: str
    ) -> None:
        await append(client, "talk", LISBON, PORTO)
        async with working(served[1], dsn):
            await extracted(client, "talk")

        older, newer = await every_page(client, "/memories", user_id="ana", order="asc")
        assert older["conflicts_with"] == [newer["memory_id"]]
        assert newer["conflicts_with"] == [older["memory_id"]]

    async def test_history_of_both_tells_of_it(self, client: AsyncClient) -> None:
        older, newer = await lisbon_and_porto(client)

        [_, linked] = await history(client, older)
        assert (linked["event"], linked["version"]) == ("UPDATE", 2)
        assert linked["reason"] == f"{newer['memory_id']} may contradict it"
        assert linked["before"]["conflict_ids"] is None
        assert linked["after"]["conflict_ids"] == [newer["memory_id"]]
        [added] = await history(client, newer)
        assert (added["event"], added["reason"]) == ("ADD", "Nobody can tell.")
        assert added["after"]["conflict_ids"] == [older["memory_id"]]

    async def test_said_time_decides_which_is_newer(self, client: AsyncClient) -> None:
        [later] = await tell(client, LISBON, at="2025-05-03T12:00:00Z")
        [earlier] = await tell(client, PORTO, at="2024-05-03T12:00:00Z")

        assert earlier["newer_conflicts"] == [later["memory_id"]]
        shown = ok(await client.get(f"/memories/{later['memory_id']}"))
        assert (shown["conflicts_with"], shown["newer_conflicts"]) == ([earlier["memory_id"]], [])

    async def test_several_are_named_newest_first(self, client: AsyncClient) -> None:
        older, newer = await lisbon_and_porto(client)
        [newest] = await tell(client, FARO)

        assert newest["conflicts_with"] == [newer["memory_id"], older["memory_id"]]
        middle = ok(await client.get(f"/memories/{newer['memory_id']}"))
        assert middle["conflicts_with"] == [newest["memory_id"], older["memory_id"]]
        assert middle["newer_conflicts"] == [newest["memory_id"]]

    async def test_only_memories_with_the_same_readers_are_linked(
        self, client: AsyncClient
    ) -> None:
        ok(await client.post("/projects", json={"project_id": "p", "project_name": "P"}), 201)
        ok(await client.post("/users", json={"user_id": "ana"}), 201)
        ok(await client.put("/projects/p/members/ana", json={"role": "editor"}))
        fields = {"project_id": "p", "scope": "project"}
        [private] = await tell(client, LISBON, visibility="owner_only", **fields)
        [shared] = await tell(client, PORTO, **fields)
        [further] = await tell(client, FARO, **fields)

        assert (private["visibility"], shared["visibility"]) == ("owner_only", "members")
        assert shared["conflicts_with"] == []
        assert further["conflicts_with"] == [shared["memory_id"]]
        assert await conflicts(client, private) == [[]]
        # Closed later: whoever still sees the other learns nothing of it.
        path = f"/memories/{further['memory_id']}"
        ok(await client.patch(path, json={"visibility": "owner_only"}))
        assert await conflicts(client, shared, further) == [[], []]

    @pytest.mark.parametrize("count", [MOST - 2, MOST - 1, MOST])
    async def test_oldest_links_give_way(self, client: AsyncClient, dsn: str, count: int) -> None:
        [older] = await tell(client, LISBON)
        links = [f"mem_{number}" for number in range(count)]
        change = "UPDATE memories SET conflict_ids = $2 WHERE memory_id = $1 RETURNING 1"
        assert await execute(dsn, change, older["memory_id"], links)

        [newer] = await tell(client, PORTO)

        read = "SELECT conflict_ids FROM memories WHERE memory_id = $1"
        [row] = await execute(dsn, read, older["memory_id"])
        assert row["conflict_ids"] == [*links, newer["memory_id"]][-MOST:]
        assert await conflicts(client, older) == [[newer["memory_id"]]]


class TestWhatEndsIt:
    @pytest.mark.parametrize("side", [0, 1], ids=["older", "newer"])
    @pytest.mark.parametrize(
        "end",
        [
            ("PATCH", "", {"content": "I have lived in Braga since May."}),
            ("PATCH", "", {"status": "archived"}),
            ("PATCH", "", {"valid_to": "2025-01-01T00:00:00Z"}),
            ("PATCH", "", {"expires_at": "2025-01-01T00:00:00Z"}),
            ("POST", "/supersede", {"content": "I have lived in Braga since May."}),
            ("DELETE", "", None),
            ("DELETE", "?hard=true", None),
        ],
        ids=["edit", "archive", "end", "expiry", "supersede", "delete", "purge"],
    )
    async def test_conflict_ends_with_either_side(
        self, client: AsyncClient, side: int, end: tuple[str, str, Any]
    ) -> None:
        pair = await lisbon_and_porto(client)
        method, way, body = end
        path = f"/memories/{pair[side]['memory_id']}{way}"
        answer = await client.request(method, path, json=body)
        assert answer.is_success, answer.text
        if method == "PATCH":
            assert answer.json()["conflicts_with"] == []

        left = pair[1 - side]
        assert await conflicts(client, left) == [[]]
        assert await every_page(client, "/memories", user_id="ana", in_conflict="true") == []
        hits = (await search(client, "Where do I live?", user_id="ana"))["results"]
        assert [hit["conflicts_with"] for hit in hits] == [[]] * len(hits)
        assert left["memory_id"] in {hit["memory_id"] for hit in hits}

    async def test_other_edits_leave_it(self, client: AsyncClient) -> None:
        older, newer = await lisbon_and_porto(client)
        path = f"/memories/{older['memory_id']}"
        shown = ok(await client.patch(path, json={"confidence": 0.8, "metadata": {"k": 1}}))

        assert shown["conflicts_with"] == [newer["memory_id"]]

    async def test_restoring_brings_it_back(self, client: AsyncClient) -> None:
        older, newer = await lisbon_and_porto(client)
        path = f"/memories/{older['memory_id']}"
        ok(await client.patch(path, json={"content": "I have lived in Braga since May."}))
        ok(await client.patch(path, json={"status": "archived"}))
        assert await conflicts(client, older, newer) == [[], []]

        linked = (await history(client, older))[1]["history_id"]
        shown = ok(await client.post(f"{path}/restore", json={"history_id": linked}))["memory"]
        assert (shown["content"], shown["conflicts_with"]) == (LISBON, [newer["memory_id"]])
        assert await conflicts(client, newer) == [[older["memory_id"]]]

    async def test_undoing_the_link_says_that_both_hold(self, client: AsyncClient) -> None:
        older, newer = await lisbon_and_porto(client)
        path = f"/memories/{older['memory_id']}"
        added = (await history(client, older))[0]["history_id"]
        shown = ok(await client.post(f"{path}/restore", json={"history_id": added}))["memory"]

        assert (shown["status"], shown["conflicts_with"]) == ("active", [])
        assert await conflicts(client, newer) == [[]]

    async def test_a_run_that_mends_one_leaves_it(
        self, client: AsyncClient, reconciler: Doubting
    ) -> None:
        older, newer = await lisbon_and_porto(client)
        more = "I live alone in a small flat in Lisbon since March 2021."
        reconciler.scripted[more] = lambda _: ReconcileDecision(
            "UPDATE", (older["memory_id"],), content=more
        )
        [mended] = await tell(client, more)

        assert (mended["memory_id"], mended["content"]) == (older["memory_id"], more)
        assert mended["conflicts_with"] == [newer["memory_id"]]

    async def test_a_merge_takes_it_over(self, client: AsyncClient, reconciler: Doubting) -> None:
        older, newer = await lisbon_and_porto(client)
        [third] = await tell(client, FARO)
        both = "I live alone in a small flat in Lisbon and one in Porto."
        ids = (older["memory_id"], newer["memory_id"])
        reconciler.scripted[both] = lambda _: ReconcileDecision("MERGE", ids, content=both)
        [merged] = await tell(client, both)

        assert merged["conflicts_with"] == [third["memory_id"]]
        assert await conflicts(client, third, older, newer) == [[merged["memory_id"]], [], []]

    async def test_a_merge_into_one_of_them_takes_it_over(
        self, client: AsyncClient, reconciler: Doubting
    ) -> None:
        reconciler.scripted[PORTO] = lambda _: ReconcileDecision("ADD")
        older, newer = await lisbon_and_porto(client)
        reconciler.scripted[FARO] = lambda _: ReconcileDecision(
            "ADD", conflicts=(older["memory_id"],)
        )
        [third] = await tell(client, FARO)
        again = "I live alone in a small flat in Porto now."
        ids = (older["memory_id"], newer["memory_id"])
        reconciler.scripted[again] = lambda _: ReconcileDecision("MERGE", ids, content=PORTO)
        [merged] = await tell(client, again)

        assert merged["memory_id"] == newer["memory_id"]
        assert merged["conflicts_with"] == [third["memory_id"]]
        assert await conflicts(client, third) == [[newer["memory_id"]]]


class TestMeetingOthers:
    @pytest.mark.parametrize("hard", [False, True], ids=["delete", "purge"])
    async def test_side_that_goes_meanwhile_is_not_linked(
        self, client: AsyncClient, dsn: str, *, hard: bool
    ) -> None:
        [older] = await tell(client, LISBON)
        gone = "DELETE FROM memories" if hard else "UPDATE memories SET status = 'deleted'"
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute("SET ROLE kemem_owner")
            async with connection.transaction():
                await connection.execute(f"{gone} WHERE memory_id = $1", older["memory_id"])
                telling = asyncio.create_task(tell(client, PORTO))
                await until_somebody_waits(dsn, connection.get_server_pid())
        finally:
            await connection.close()
        [newer] = await telling

        assert (newer["content"], newer["conflicts_with"]) == (PORTO, [])
        [row] = await execute(
            dsn, "SELECT conflict_ids FROM memories WHERE memory_id = $1", newer["memory_id"]
        )
        assert row["conflict_ids"] is None

    async def test_deletion_that_comes_second_ends_it(self, client: AsyncClient, dsn: str) -> None:
        [older] = await tell(client, LISBON)
        async with holding(
            dsn, f"SELECT 1 FROM memories WHERE memory_id = '{older['memory_id']}' FOR UPDATE"
        ) as holder:
            telling = asyncio.create_task(tell(client, PORTO))
            await until_somebody_waits(dsn, holder)
            deleting = asyncio.create_task(client.delete(f"/memories/{older['memory_id']}"))
        [newer], answer = await asyncio.gather(telling, deleting)

        assert answer.status_code == 204
        assert await conflicts(client, newer) == [[]]

    async def test_two_at_once_are_both_linked(self, client: AsyncClient) -> None:
        [older] = await tell(client, LISBON)
        [[one], [two]] = await asyncio.gather(tell(client, PORTO), tell(client, FARO))

        [named] = await conflicts(client, older)
        assert sorted(named) == sorted([one["memory_id"], two["memory_id"]])

    async def test_statement_that_is_known_links_nothing(self, client: AsyncClient) -> None:
        await save(client, PORTO)
        await tell(client, LISBON)
        [again] = await tell(client, PORTO)

        assert again["content"] == PORTO
        assert len(await every_page(client, "/memories", user_id="ana")) == 2
