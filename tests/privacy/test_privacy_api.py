"""Letting go, through the public routes: what goes, what stays, and what a dump still says."""

import asyncpg
import pytest
from httpx import AsyncClient

from app.database.registry import TABLES
from tests.support.tenants import Caller

SECRET = "zanzibar-nightingale"


async def dump(dsn: str, tenant_id: str) -> str:
    """Every row of a tenant, as text."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET ROLE kemem_owner")
        texts = []
        for table in TABLES:
            name = table.__tablename__
            if name == "api_keys":  # When a key was last used is written at leisure.
                continue
            rows = await connection.fetch(
                f"SELECT {name}::text AS line FROM {name} WHERE tenant_id = $1", tenant_id
            )
            texts += [f"{name}: {row['line']}" for row in rows]
        return "\n".join(texts)
    finally:
        await connection.close()


async def fill(client: AsyncClient) -> str:
    """Ana says the secret in a session, a memory, a refused memory and a kept answer."""
    body = {"user_id": "ana", "messages": [{"role": "user", "content": f"I saw {SECRET}"}]}
    await client.post("/sessions/s1/messages", json=body, headers={"Idempotency-Key": "one"})
    saved = await client.post(
        "/memories",
        json={"messages": f"Her favourite is {SECRET}.", "user_id": "ana", "infer": False},
        headers={"Idempotency-Key": "two"},
    )
    memory_id = saved.json()["results"][0]["memory_id"]
    await client.patch(f"/memories/{memory_id}", json={"content": f"She dislikes {SECRET}."})
    refused = {"messages": SECRET, "user_id": "ana", "infer": False, "confidence": 0.1}
    await client.post("/memories", json=refused)
    for session, text in (("s1", "The tent leaks at night."), ("s2", "The stove is broken.")):
        await client.post(
            "/memories",
            json={
                "messages": text, "user_id": "ana", "session_id": session, "scope": "session",
                "infer": False,
            },
        )  # fmt: skip
    return memory_id


class TestDeleteUser:
    async def test_no_word_of_the_person_stays(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await fill(client)
        assert SECRET in await dump(dsn, acme.tenant_id)

        response = await client.delete("/users/ana", params={"confirm": True})

        assert response.status_code == 200
        assert response.json()["deleted"]["messages"] == 1
        left = await dump(dsn, acme.tenant_id)
        assert SECRET not in left
        assert "leaks" not in left
        assert (await client.get("/users/ana")).status_code == 404

    async def test_another_person_keeps_everything(self, client: AsyncClient) -> None:
        await fill(client)
        bob = {"messages": "Bob likes the sea very much.", "user_id": "bob", "infer": False}
        await client.post("/memories", json=bob)

        await client.delete("/users/ana", params={"confirm": True})

        found = await client.get("/memories", params={"user_id": "bob"})
        assert [row["content"] for row in found.json()["items"]] == [bob["messages"]]

    async def test_without_confirmation_nothing_goes(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await fill(client)
        before = await dump(dsn, acme.tenant_id)

        refused = await client.delete("/users/ana")
        counted = await client.delete("/users/ana", params={"dry_run": True})

        assert (refused.status_code, refused.json()["code"]) == (409, "confirmation_required")
        assert refused.json()["holds"].items() <= counted.json()["deleted"].items()
        assert counted.json()["dry_run"] is True
        assert await dump(dsn, acme.tenant_id) == before

    async def test_the_other_tenants_person_is_not_found(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await fill(client)

        response = await stranger.delete("/users/ana", params={"confirm": True})

        assert response.status_code == 404
        assert (await client.get("/users/ana")).status_code == 200


class TestDeleteSession:
    async def test_its_messages_and_own_memories_go_and_the_users_stay(
        self, client: AsyncClient
    ) -> None:
        memory_id = await fill(client)

        response = await client.delete("/sessions/s1", params={"confirm": True})

        assert response.json()["deleted"]["memories"] == 1
        assert (await client.get("/sessions/s1/messages")).status_code == 404
        assert (await client.get(f"/memories/{memory_id}")).status_code == 200
        left = await client.get("/memories", params={"scope": "session"})
        assert [row["scope_id"] for row in left.json()["items"]] == ["s2"]

    async def test_an_empty_session_needs_no_confirmation(self, client: AsyncClient) -> None:
        await client.post("/sessions", json={"session_id": "s3", "user_id": "ana"})

        response = await client.delete("/sessions/s3")

        assert response.status_code == 200


class TestDeleteProject:
    async def test_shared_memories_go_and_a_members_own_stay(self, client: AsyncClient) -> None:
        memory_id = await fill(client)
        await client.post(
            "/projects", json={"project_id": "p", "project_name": "P", "owner_id": "ana"}
        )
        shared = await client.post(
            "/memories",
            json={
                "messages": "We deploy on Tuesdays.", "user_id": "ana", "project_id": "p",
                "scope": "project", "infer": False,
            },
        )  # fmt: skip
        shared_id = shared.json()["results"][0]["memory_id"]

        response = await client.delete("/projects/p", params={"confirm": True})

        assert response.json()["deleted"] == {
            "decisions": 1, "history": 1, "memories": 1, "members": 1
        }  # fmt: skip
        assert (await client.get(f"/memories/{shared_id}")).status_code == 404
        assert (await client.get(f"/memories/{memory_id}")).status_code == 200


class TestDeleteAgent:
    async def test_the_home_of_users_is_not_deleted(self, client: AsyncClient) -> None:
        await fill(client)

        response = await client.delete("/agents/default", params={"confirm": True})

        assert (response.status_code, response.json()["code"]) == (409, "agent_in_use")

    @pytest.mark.parametrize("confirm", [True, False])
    async def test_its_private_memories_go_once_confirmed(
        self, client: AsyncClient, confirm: bool
    ) -> None:
        await fill(client)
        private = {"messages": "Only for the coach.", "user_id": "ana", "agent_id": "coach"}
        saved = await client.post("/memories", json=private | {"infer": False})
        memory_id = saved.json()["results"][0]["memory_id"]

        response = await client.delete("/agents/coach", params={"confirm": confirm})

        assert response.status_code == (200 if confirm else 409)
        expected = 404 if confirm else 200
        assert (await client.get(f"/memories/{memory_id}")).status_code == expected
        assert (await client.get("/users/ana")).status_code == 200
