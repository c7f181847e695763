"""Items of a project beyond the matrix: many at once, unseen ones, and their past."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient

from app.identity.tenants.access import Access, Principal
from app.memory.memories.deletion_service import BulkDeletion
from app.memory.memories.search_schemas import BulkDelete, DeletionScheduled
from app.memory.memories.service import MemoryService
from tests.operations.operations_support import claim
from tests.projects.conftest import PROJECT, WAYS, WHO, Team
from tests.support.api import every_page, listed, ok, problem, save

PATH = f"/projects/{PROJECT}/memories"


class TestTheListOfItems:
    async def test_owners_and_admins_see_all_of_them_and_no_content(self, team: Team) -> None:
        written = {
            await team.write(author, visibility, f"The tortoise of {author}, {visibility}.")
            for author in ("edda", "keeper")
            for visibility in ("public", "members", "owner_only")
        }
        for user_id in ("olga", "adam"):
            async with team.acting(user_id) as acting:
                rows = await every_page(acting, PATH, limit=4)

            assert {row["memory_id"] for row in rows} == written
            assert {key for row in rows for key in row} == {
                "memory_id", "user_id", "visibility", "status", "create_time", "update_time",
            }  # fmt: skip
            assert "tortoise" not in str(rows)

    async def test_list_of_items_can_be_narrowed(self, team: Team) -> None:
        await team.write("keeper", "owner_only")
        hers = await team.write("edda", "owner_only")
        await team.write("edda", "members")
        async with team.acting("adam") as acting:
            narrow = {"user_id": "edda", "visibility": "owner_only"}
            assert [row["memory_id"] for row in await every_page(acting, PATH, **narrow)] == [hers]
            problem(await acting.get(PATH, params={"visibility": "all"}), 422, "invalid_request")
            problem(await acting.get(PATH, params={"cursor": "x"}), 422, "invalid_cursor")

    async def test_the_application_sees_it_too(self, team: Team, stranger: AsyncClient) -> None:
        hidden = await team.write("edda", "owner_only")

        assert [row["memory_id"] for row in await every_page(team.client, PATH)] == [hidden]
        problem(await stranger.get(PATH), 404, "project_not_found")

    async def test_what_is_private_or_deleted_is_not_in_it(self, team: Team) -> None:
        await save(team.client, "Edda keeps bees.", user_id="edda", project_id=PROJECT)
        gone = await team.write("edda", "members")
        ok(await team.client.delete(f"/memories/{gone}"), 204)

        assert await every_page(team.client, PATH) == []


class TestManyAtOnce:
    @pytest.fixture
    async def items(self, team: Team) -> dict[str, str]:
        """One item of every author and visibility, and one of edda's own that is no item."""
        made = {
            f"{author} {visibility}": await team.write(author, visibility)
            for author in ("edda", "vera", "keeper")
            for visibility in ("public", "members", "owner_only")
        }
        private = await save(
            team.client, "Edda keeps bees.", user_id="edda", project_id=PROJECT,
            on_duplicate="allow",
        )  # fmt: skip
        return made | {"edda private": private["memory_id"]}

    @pytest.mark.parametrize("way", ["query", "body"])
    async def test_a_role_deletes_what_it_may(
        self, team: Team, items: dict[str, str], way: str
    ) -> None:
        """Fewest first: what one may not, the next still finds."""
        everything = set(items)
        hers = {name for name in items if name.startswith("edda")}
        for user_id, expected in (
            ("nora", set()),
            ("edda", hers),
            ("adam", {name for name in everything if name != "edda private"} - hers),
        ):
            async with team.acting(user_id) as acting:
                told = await delete_many(acting, way, project_id=PROJECT, dry_run=True)
                assert told["deleted"] == len(expected), user_id
                ok_told = await delete_many(acting, way, project_id=PROJECT, confirm=True)
            assert ok_told["deleted"] == len(expected), user_id
            left = {name for name, one in items.items() if one in await listed(team.client)}
            everything -= expected
            assert left == everything

    async def test_a_viewer_is_told(self, team: Team, items: dict[str, str]) -> None:
        async with team.acting("vera", WAYS[1]) as acting:
            answer = await acting.delete(
                "/memories", params={"project_id": PROJECT, "confirm": True}
            )
            private = await acting.delete(
                "/memories", params={"project_id": PROJECT, "scope": "user", "confirm": True}
            )

        problem(answer, 403, "read_only_member")
        assert ok(private)["deleted"] == 0
        assert len(await listed(team.client)) == len(items)

    async def test_without_a_project_it_is_the_users_own(
        self, team: Team, items: dict[str, str]
    ) -> None:
        async with team.acting("olga") as acting:
            everywhere = {"scope": "project", "confirm": True}
            told = ok(await acting.delete("/memories", params=everywhere))
            named = await acting.delete("/memories", params={"user_id": "edda", "confirm": True})

        assert told["deleted"] == 0
        problem(named, 404, "user_not_found")

    async def test_an_owner_clears_what_one_member_wrote(
        self, team: Team, items: dict[str, str]
    ) -> None:
        async with team.acting("olga") as acting:
            params = {"project_id": PROJECT, "user_id": "edda", "confirm": True}
            assert ok(await acting.delete("/memories", params=params))["deleted"] == 3

    async def test_nobody_asks_by_counting_what_an_item_says(
        self, team: Team, items: dict[str, str]
    ) -> None:
        """Edda's own item is counted by its author, and by no owner who looks for its words."""
        body = {
            "project_id": PROJECT, "dry_run": True,
            "filters": {"visibility": "owner_only"},
        }  # fmt: skip
        async with team.acting("olga") as owner, team.acting("edda") as author:
            assert ok(await owner.post("/memories/delete", json=body))["deleted"] == 0
            assert ok(await author.post("/memories/delete", json=body))["deleted"] == 1
            by_type = {"project_id": PROJECT, "memory_type": "fact", "dry_run": True}
            count = ok(await owner.delete("/memories", params=by_type))["deleted"]
        assert count == 6

    async def test_a_job_deletes_by_the_role_of_its_moment(
        self, team: Team, items: dict[str, str], dsn: str
    ) -> None:
        """More than one transaction takes; the asker is an editor when the job runs."""
        access = Access(team.caller.tenant_id, user_id="adam")
        principal = Principal(access, team.caller.key_id, frozenset({"write"}), {})
        body = BulkDelete(project_id=PROJECT, confirm=True)
        service = MemoryService(team.runtime.work, team.runtime.counter, most_at_once=1)
        told = await service.delete_many(principal, body, location="body")
        assert isinstance(told, DeletionScheduled)
        assert told.selected == 9
        async with team.acting("adam") as acting:
            assert ok(await acting.get(f"/jobs/{told.job_id}"))["user_id"] == "adam"

        await team.put("adam", "editor")
        job = await claim(dsn, team.caller, told.job_id)
        assert await BulkDeletion(team.runtime.database, batch=2)(job) == {"deleted": 0}
        await team.put("adam", "admin")
        assert await BulkDeletion(team.runtime.database, batch=2)(job) == {"deleted": 9}
        assert await listed(team.client) == [items["edda private"]]


async def delete_many(client: AsyncClient, way: str, **fields: Any) -> Any:
    if way == "query":
        return ok(await client.delete("/memories", params=fields))
    return ok(await client.post("/memories/delete", json=fields))


class TestThePast:
    async def test_what_was_said_in_private_stays_private(self, team: Team) -> None:
        """An item that is opened shows others what it says from then on."""
        secret, item = "The tortoise is ill.", None
        async with team.acting("edda") as edda:
            item = await team.write("edda", "owner_only", secret)
            [entry] = await every_page(edda, f"/memories/{item}/history")
            before = entry["create_time"]
            opened = {"visibility": "members", "content": "The tortoise is well."}
            ok(await edda.patch(f"/memories/{item}", json=opened))
            mine = await every_page(edda, f"/memories/{item}/history")
            then = await listed(edda, project_id=PROJECT, known_at=before)
        assert secret in str(mine)
        assert then == [item]

        async with team.acting("olga") as olga:
            assert ok(await olga.get(f"/memories/{item}"))["content"] == opened["content"]
            history = await every_page(olga, f"/memories/{item}/history")
            assert await listed(olga, project_id=PROJECT, known_at=before) == []
            body = {"query": "tortoise", "project_id": PROJECT, "known_at": before}
            searched = ok(await olga.post("/memories/search", json=body))
            restored = await olga.post(
                f"/memories/{item}/restore", json={"history_id": mine[0]["history_id"]}
            )
        assert [row["event"] for row in history] == [row["event"] for row in mine]
        assert secret not in str(history)
        assert history[-1]["after"]["content"] == opened["content"]
        assert secret not in str(searched)
        problem(restored, 404, "history_not_found")

    async def test_what_is_closed_is_closed_with_its_past(self, team: Team) -> None:
        item = await team.write("edda", "members")
        async with team.acting("edda") as edda, team.acting("olga") as olga:
            ok(await edda.patch(f"/memories/{item}", json={"visibility": "owner_only"}))

            problem(await olga.get(f"/memories/{item}/history"), 404, "memory_not_found")
            problem(await olga.get(f"/memories/{item}/feedback"), 404, "memory_not_found")
            problem(
                await olga.post(f"/memories/{item}/supersede", json={"content": "Ill."}),
                404, "memory_not_found",
            )  # fmt: skip


class TestOtherWaysIn:
    async def test_supersede_and_restore_follow_the_role(self, team: Team) -> None:
        for role, status in (("viewer", 403), ("editor", 403), ("admin", 201), ("owner", 201)):
            item = await team.write("keeper", "members")
            async with team.acting(WHO[role]) as acting:
                entry = (await every_page(acting, f"/memories/{item}/history"))[0]
                body = {"history_id": entry["history_id"]}
                restored = await acting.post(f"/memories/{item}/restore", json=body)
                assert restored.status_code == (200 if status == 201 else 403)
                body = {"content": f"The tortoise of {role} is asleep."}
                response = await acting.post(f"/memories/{item}/supersede", json=body)
            assert response.status_code == status
            if status == 201:
                # It stays its author's.
                assert response.json()["memory"]["user_id"] == "keeper"

    async def test_who_may_read_may_say_what_it_is_worth(self, team: Team) -> None:
        item = await team.write("keeper", "members")
        hidden = await team.write("keeper", "owner_only")
        async with team.acting("vera") as acting:
            rated = await acting.post(f"/memories/{item}/feedback", json={"rating": "wrong"})
            problem(
                await acting.post(f"/memories/{hidden}/feedback", json={"rating": "wrong"}),
                404, "memory_not_found",
            )  # fmt: skip
        ok(rated, 201)

    async def test_a_role_that_is_lost_meanwhile_counts(self, team: Team) -> None:
        item = await team.write("keeper", "members")
        async with team.acting("adam") as acting:
            answers = await asyncio.gather(
                acting.patch(f"/memories/{item}", json={"content": "It sleeps all winter."}),
                team.put("adam", "viewer"),
            )
            late = await acting.patch(f"/memories/{item}", json={"content": "It wakes up."})
        assert answers[0].status_code in {200, 403}
        problem(late, 403, "read_only_member")
