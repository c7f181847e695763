"""Letting go, through the public routes: what goes, what stays, and what a dump still says."""

from datetime import timedelta
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.memory.memories.deletion_service import Purged, PurgeService
from app.runtime import Runtime
from tests.privacy.privacy_support import (
    OF_SESSIONS,
    OF_THE_USER,
    PLAN,
    SECRET,
    dump,
    fill,
    fill_window,
)
from tests.support.api import execute, ok, problem, save, tables_with
from tests.support.service import client_of
from tests.support.tenants import Caller


class TestDeleteUser:
    async def test_no_word_of_the_person_stays(
        self, runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await fill(client)
        await fill_window(runtime, client, acme, dsn)
        before = await dump(dsn, acme.tenant_id)
        assert set(tables_with(SECRET, before)) == OF_SESSIONS | OF_THE_USER | {
            "memories", "memory_history", "gate_decisions", "idempotency_keys"
        }  # fmt: skip
        assert before["context_injections"]

        receipt = ok(await client.delete("/users/ana", params={"confirm": True}))

        assert receipt["deleted"]["messages"] == 31
        left = await dump(dsn, acme.tenant_id)
        assert tables_with(SECRET, left) == []
        assert tables_with("leaks", left) == []
        assert left["context_injections"] == []
        assert left["injected_contexts"] == []
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

    async def test_no_word_of_it_stays_but_what_is_the_users(
        self, runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await fill_window(runtime, client, acme, dsn)
        before = await dump(dsn, acme.tenant_id)
        users = OF_THE_USER | {"memories", "memory_history", "gate_decisions"}
        assert set(tables_with(SECRET, before)) == OF_SESSIONS | users

        assert tables_with(PLAN, before) == ["blocks", "block_history"]

        receipt = ok(await client.delete("/sessions/talk", params={"confirm": True}))

        assert (receipt["deleted"]["blocks"], receipt["deleted"]["block_history"]) == (1, 1)
        left = await dump(dsn, acme.tenant_id)
        assert tables_with(PLAN, left) == []
        assert set(tables_with(SECRET, left)) == users
        assert left["context_injections"] == []
        assert left["injected_contexts"] == []

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

        went = {name: count for name, count in response.json()["deleted"].items() if count}
        # What the memory owed the project's profile and graph is owed no more.
        assert went == {"decisions": 1, "history": 1, "memories": 1, "members": 1, "jobs": 2}
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

    async def test_blocks_of_its_sessions_go_and_are_counted(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await fill(client)
        body = {"session_id": "lesson", "user_id": "ana", "agent_id": "coach"}
        ok(await client.post("/sessions", json=body), 201)
        for session in ("lesson", "s1"):
            block = {"label": "plan", "value": f"The {PLAN} in {session}.", "session_id": session}
            ok(await client.post("/blocks", json=block), 201)
        counted = ok(await client.delete("/agents/coach", params={"dry_run": True}))

        receipt = ok(await client.delete("/agents/coach", params={"confirm": True}))

        assert receipt["deleted"] == counted["deleted"]
        assert (receipt["deleted"]["blocks"], receipt["deleted"]["block_history"]) == (1, 1)
        left = await dump(dsn, acme.tenant_id)
        assert tables_with(f"{PLAN} in lesson", left) == []
        assert tables_with(f"{PLAN} in s1", left) == ["blocks", "block_history"]


class TestWhatIsLeftOfSomeone:
    async def test_words_refused_of_an_unknown_person_go_too(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        refused = {"messages": SECRET, "user_id": "zoe", "infer": False, "confidence": 0.1}
        problem(await client.post("/memories", json=refused), 422, "gate_rejected")
        assert tables_with(SECRET, await dump(dsn, acme.tenant_id)) == ["gate_decisions"]

        receipt = ok(await client.delete("/users/zoe"))

        assert receipt["deleted"]["decisions"] == 1
        assert tables_with(SECRET, await dump(dsn, acme.tenant_id)) == []
        problem(await client.delete("/users/zoe"), 404, "user_not_found")

    async def test_a_key_of_the_person_is_revoked_and_loses_its_name(
        self, app: FastAPI, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await fill(client)
        body = {"key_name": SECRET, "scopes": ["write"], "user_id": "ana"}
        key = ok(await client.post("/keys", json=body), 201)["key"]

        receipt = ok(await client.delete("/users/ana", params={"confirm": True}))

        assert receipt["deleted"]["keys"] == 1
        async with client_of(app, key) as hers:
            again = {"messages": [{"role": "user", "content": "I am still here."}]}
            problem(await hers.post("/sessions/s9/messages", json=again), 401, "revoked_key")
        assert tables_with(SECRET, await dump(dsn, acme.tenant_id)) == []
        problem(await client.delete("/users/ana"), 404, "user_not_found")


class TestWhatIsLeftOfASession:
    @pytest.mark.parametrize("first", ["s1", 'a"\\b', "会话"])
    async def test_no_word_of_it_stays_in_verdicts_or_kept_answers(
        self, client: AsyncClient, acme: Caller, dsn: str, first: str
    ) -> None:
        place = quote(first, safe="")
        for number, session in (("1", first), ("11", f"{first}1")):
            text = f"{SECRET} in s{number}!"
            said = {"user_id": "ana", "messages": [{"role": "user", "content": text}]}
            kept = {"Idempotency-Key": f"said {number}"}
            path = f"/sessions/{quote(session, safe='')}/messages"
            ok(await client.post(path, json=said, headers=kept), 201)
            saved = {"messages": text, "user_id": "ana", "session_id": session, "infer": False}
            refused = await client.post("/memories", json=saved | {"confidence": 0.1})
            problem(refused, 422, "gate_rejected")
            kept = {"Idempotency-Key": f"saved {number}"}
            own = saved | {"scope": "session"}
            ok(await client.post("/memories", json=own, headers=kept), 201)

        receipt = ok(await client.delete(f"/sessions/{place}", params={"confirm": True}))

        assert receipt["deleted"]["answers"] == 2
        left = await dump(dsn, acme.tenant_id)
        assert tables_with("in s1!", left) == []
        assert set(tables_with("in s11!", left)) == {
            "gate_decisions", "idempotency_keys", "memories", "memory_history", "messages"
        }  # fmt: skip


class TestPurge:
    async def test_old_refused_verdicts_go_and_others_stay(
        self, runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        for text in ("An old refusal.", "A new refusal."):
            body = {"messages": text, "user_id": "zoe", "infer": False, "confidence": 0.1}
            problem(await client.post("/memories", json=body), 422, "gate_rejected")
        await save(client, "An old acceptance.")
        await execute(
            dsn,
            "UPDATE gate_decisions SET create_time = now() - interval '8 days' "
            "WHERE tenant_id = $1 AND content LIKE 'An old%'",
            acme.tenant_id,
        )
        service, age = PurgeService(runtime.database), timedelta(days=7)

        due = await service.due(acme.tenant_id, age=age)
        gone = await service.purge(acme.tenant_id, age=age, removed=lambda _: None)

        assert due == gone == Purged(memories=0, idempotency_keys=0, verdicts=1, expired=0)
        left = (await dump(dsn, acme.tenant_id))["gate_decisions"]
        assert len(left) == 2
        assert not any("old refusal" in line for line in left)


class TestHardDelete:
    async def test_a_kept_answer_goes_and_another_persons_is_not_even_read(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        kept = {"Idempotency-Key": "one"}
        body = {"messages": SECRET + " sings.", "user_id": "ana", "infer": False}
        saved = ok(await client.post("/memories", json=body, headers=kept), 201)
        memory_id = saved["results"][0]["memory_id"]
        # Not a text: whoever reads it fails.
        await execute(
            dsn,
            "INSERT INTO idempotency_keys (tenant_id, key_id, idempotency_key, user_id, "
            "request_hash, status, answer, expires_at) "
            "VALUES ($1, 'key', 'bob', 'bob', '', 200, '\\xff', now() + interval '1 hour')",
            acme.tenant_id,
        )

        gone = await client.delete(f"/memories/{memory_id}", params={"hard": True})

        assert gone.status_code == 204, gone.text
        left = await dump(dsn, acme.tenant_id)
        assert tables_with(SECRET, left) == []
        assert len(left["idempotency_keys"]) == 1
