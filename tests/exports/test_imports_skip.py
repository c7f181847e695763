"""What `on_conflict=skip` leaves out: nothing is ever attached to somebody else's row."""

from typing import Any

import pytest
from httpx import AsyncClient

from tests.exports.exports_support import exported, imported, rows_in, send, with_row
from tests.support.api import append, ok, problem, save
from tests.support.folders import folder, upload


async def conflicts_of(client: AsyncClient, lines: list[bytes], **query: Any) -> list[Any]:
    """What an import that may skip is refused for; nothing of it is there."""
    before = await exported(client)
    answer = await send(client, lines, on_conflict="skip", **query)
    body = problem(answer, 409, "import_conflict")
    assert (await exported(client))[1:-1] == before[1:-1]
    assert body["count"] == len(body["conflicts"])
    return [(one["type"], *one["key"].values()) for one in body["conflicts"]]


@pytest.mark.parametrize("query", [{}, {"dry_run": True}], ids=str)
class TestAnother:
    """The id of a row is that of another row here."""

    async def test_a_session_of_somebody_else(
        self, client: AsyncClient, stranger: AsyncClient, query: dict
    ) -> None:
        await append(client, "s1", "I have two cats.", user_id="ana")
        await append(stranger, "s1", "I have a dog.", user_id="ben")
        await append(stranger, "s2", "I have a horse.", user_id="ana")

        found = await conflicts_of(stranger, await exported(client), **query)

        assert ("session", "s1") in found

    async def test_a_session_of_the_same_user_that_was_begun_apart(
        self, client: AsyncClient, stranger: AsyncClient, query: dict
    ) -> None:
        await append(client, "s1", "I have two cats.", user_id="ana")
        await append(stranger, "s1", "I have a dog.", user_id="ana")

        assert ("session", "s1") in await conflicts_of(stranger, await exported(client), **query)

    async def test_a_folder_of_somebody_else(
        self, client: AsyncClient, stranger: AsyncClient, query: dict
    ) -> None:
        for tenant, user_id in ((client, "ana"), (stranger, "ben")):
            body = {"folder_id": "shelf", "folder_name": "Shelf", "user_id": user_id}
            await tenant.post("/agents", json={"agent_id": "default", "agent_name": "Default"})
            await tenant.post("/users", json={"user_id": user_id, "agent_id": "default"})
            ok(await tenant.post("/folders", json=body | {"scope": "user"}), 201)
            await upload(tenant, "shelf", "bees.txt", b"A hive has one queen.")

        assert ("folder", "shelf") in await conflicts_of(stranger, await exported(client), **query)

    async def test_a_project_of_others(
        self, client: AsyncClient, stranger: AsyncClient, query: dict
    ) -> None:
        for tenant, user_id in ((client, "ana"), (stranger, "ben")):
            await save(tenant, "Bees dance.", user_id=user_id)
            body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": user_id}
            ok(await tenant.post("/projects", json=body), 201)
        await save(client, "Launch is in May.", project_id="apollo", scope="project")

        assert ("project", "apollo") in await conflicts_of(
            stranger, await exported(client), **query
        )

    async def test_agents_and_users_are_known_by_their_ids(
        self, client: AsyncClient, stranger: AsyncClient, query: dict
    ) -> None:
        await save(client, "She has two cats.")
        await save(stranger, "She has a dog.")
        lines = await exported(client)

        report = ok(await send(stranger, lines, on_conflict="skip", **query))

        assert set(report["skipped"]) <= {"agent", "user"}
        assert report["inserted"]["memory"] == 1


class TestChanged:
    """The row is there, and has gone on since."""

    async def test_what_hangs_on_it_is_written(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await append(client, "s1", "One.", "Two.")
        await imported(stranger, await exported(client))
        ok(await stranger.patch("/sessions/s1", json={"session_name": "Mine"}))
        await append(client, "s1", "Three.")

        report = ok(await send(stranger, await exported(client), on_conflict="skip"))

        assert set(report["skipped"]) == {"session", "user"}
        assert report["inserted"] == {"message": 1}
        # No number is given twice, and it is in the window.
        added = await append(stranger, "s1", "Four.")
        assert [one["sequence_no"] for one in added["messages"]] == [4]
        context = ok(await stranger.post("/sessions/s1/context", json={}))
        said = [one["content"] for one in context["messages"] if one["role"] == "user"]
        assert said[-4:] == ["One.", "Two.", "Three.", "Four."]


class TestTaken:
    """Another id has what only one may have: nothing of the row is here."""

    async def test_what_hangs_on_it_is_skipped_and_told(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        saved = await save(client, "She has two cats.")
        path = f"/memories/{saved['memory_id']}/feedback"
        ok(await client.post(path, json={"rating": "wrong", "comment": "Three."}), 201)
        own = await save(stranger, "She has two cats.")
        lines = await exported(client)

        report = ok(await send(stranger, lines, on_conflict="skip"))

        told = [(one["type"], one["detail"]) for one in report["conflicts"]]
        assert ("memory", "another row holds a value that only one may have") in told
        assert ("feedback", f"there is no memory {saved['memory_id']}") in told
        assert report["skipped"]["feedback"] == 1
        rows = rows_in(await exported(stranger))
        assert [row["row"]["memory_id"] for row in rows if row["type"] == "memory"] == [
            own["memory_id"]
        ]
        assert not [row for row in rows if row["type"] == "feedback"]

    async def test_part_by_part_too(self, client: AsyncClient, stranger: AsyncClient) -> None:
        for tenant in (client, stranger):
            await save(tenant, "She has two cats.")
            folder_id = await folder(tenant)
            await upload(tenant, folder_id, "bees.txt", b"A hive has one queen.")
            attributes = {"attributes": {"profession": "nurse"}}
            path = "/users/ana/profile"
            ok(await tenant.patch(path, json=attributes, headers={"If-Match": "*"}))
        lines = await exported(client)
        before = rows_in(await exported(stranger))

        done = await imported(stranger, lines, size=1, on_conflict="skip")

        after = rows_in(await exported(stranger))
        assert [row for row in after if row["type"].startswith("profile")] == [
            row for row in before if row["type"].startswith("profile")
        ]
        assert done["skipped"] >= 4

    async def test_a_chain_within_one_kind(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        """The newer of two memories is there under another id; the older points at it."""
        new = await save(client, "She lives in Bonn.")
        lines = await exported(client)
        old = with_row(
            "memory", lines, memory_id="old", content="She lives in Ulm.", content_hash="AAAA",
            status="superseded", superseded_by=new["memory_id"],
        )  # fmt: skip
        await save(stranger, "She lives in Bonn.")

        refused = problem(await send(stranger, [*lines[:-1], old[1]]), 409, "import_conflict")
        report = ok(await send(stranger, [*lines[:-1], old[1]], on_conflict="skip"))

        assert "memory" in {one["type"] for one in refused["conflicts"]}
        assert report["skipped"]["memory"] == 2
        assert report["conflicts"][-1]["detail"] == f"there is no memory {new['memory_id']}"

    async def test_unless_none_may_be_skipped(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        saved = await save(client, "She has two cats.")
        path = f"/memories/{saved['memory_id']}/feedback"
        ok(await client.post(path, json={"rating": "wrong"}), 201)
        await save(stranger, "She has two cats.")

        body = problem(await send(stranger, await exported(client)), 409, "import_conflict")

        assert "feedback" not in {one["type"] for one in body["conflicts"]}
