"""Whose memory a tool works on: the session's user's, whatever the key may and the model says."""

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, listed, ok, problem, save
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key
from tests.support.tools import called, refusal, result


@pytest.fixture
async def two(client: AsyncClient) -> AsyncClient:
    """The API as an admin: s1 is Ana's, s2 is Ben's, and both have said and kept something."""
    await append(client, "s1", "My kayak is red.")
    await append(client, "s2", "My kayak is blue.", user_id="ben")
    await save(client, "Ana drinks green tea.")
    await save(client, "Ben drinks black tea.", user_id="ben")
    return client


async def bound(app: FastAPI, runtime: Runtime, acme: Caller, **to: str) -> AsyncIterator:
    key = await make_key(runtime, acme.tenant_id, "write", **to)
    async with client_of(app, key.key) as opened:
        yield opened


@pytest.fixture
async def ben(app, runtime, acme, two) -> AsyncIterator[AsyncClient]:
    """The API with a key that is bound to Ben."""
    async for one in bound(app, runtime, acme, user_id="ben"):
        yield one


async def memory_of(client: AsyncClient, user_id: str) -> str:
    [memory_id] = await listed(client, user_id=user_id)
    return memory_id


class TestUsers:
    async def test_each_session_finds_what_is_its_users(self, two) -> None:
        for session_id, mine, others in (("s1", "green", "black"), ("s2", "black", "green")):
            text = await result(two, "memory_search", {"query": "tea"}, session_id=session_id)
            assert (mine in text, others in text) == (True, False)

        for session_id, mine, others in (("s1", "red", "blue"), ("s2", "blue", "red")):
            told = {"query": "kayak"}
            text = await result(two, "conversation_search", told, session_id=session_id)
            assert (mine in text, others in text) == (True, False)

    async def test_what_is_anothers_cannot_be_deleted_and_reads_as_missing(self, two) -> None:
        bens = await memory_of(two, "ben")

        text = await refusal(two, "memory_delete", {"memory_id": bens})
        missing = await refusal(two, "memory_delete", {"memory_id": "mem_missing"})

        assert text.replace(bens, "mem_missing") == missing
        assert ok(await two.get(f"/memories/{bens}"))["status"] == "active"

    async def test_counts_are_of_one_user(self, two) -> None:
        await save(two, "Ben collects maps.", user_id="ben")

        assert (await called(two, "memory_stats"))["data"]["total"] == 1
        assert (await called(two, "memory_stats", session_id="s2"))["data"]["total"] == 2

    async def test_a_model_cannot_name_another_user(self, two) -> None:
        text = await refusal(two, "memory_search", {"query": "tea", "user_id": "ben"})

        assert "Leave out user_id" in text
        assert "black" not in text

    async def test_what_is_saved_in_bens_session_is_bens(self, two) -> None:
        told = {"content": "He plays the violin on Sundays."}

        await result(two, "memory_save", told, session_id="s2")

        assert len(await listed(two, user_id="ben")) == 2
        assert len(await listed(two, user_id="ana")) == 1


class TestKeys:
    async def test_a_bound_key_reaches_its_own_sessions_alone(self, ben) -> None:
        assert "black" in await result(ben, "memory_search", {"query": "tea"}, session_id="s2")
        foreign = problem(
            await ben.post("/tools/memory_stats/call", json={"session_id": "s1"}),
            404, "session_not_found",
        )  # fmt: skip
        missing = problem(
            await ben.post("/tools/memory_stats/call", json={"session_id": "s9"}),
            404, "session_not_found",
        )  # fmt: skip
        assert foreign["detail"].replace("s1", "s9") == missing["detail"]
        problem(await ben.get("/tools", params={"session_id": "s1"}), 404, "session_not_found")

    async def test_a_key_of_an_agent_is_offered_what_its_agent_may(
        self, app, runtime, acme, two
    ) -> None:
        body = {"agent_id": "narrow", "agent_name": "N", "config": {"tools": ["memory_stats"]}}
        ok(await two.post("/agents", json=body), 201)

        async for narrow in bound(app, runtime, acme, agent_id="narrow"):
            assert ok(await narrow.get("/tools"))["names"] == ["memory_stats"]
            agent_id = ok(await two.get("/sessions/s1"))["agent_id"]
            problem(
                await narrow.get("/tools", params={"agent_id": agent_id}), 404, "agent_not_found"
            )

    async def test_another_tenant_finds_no_session(self, two, stranger) -> None:
        problem(
            await stranger.post("/tools/memory_stats/call", json={"session_id": "s1"}),
            404,
            "session_not_found",
        )

    async def test_ids_of_another_tenant_name_nothing(self, two, stranger) -> None:
        await append(stranger, "s1", "Hello.")

        text = await refusal(stranger, "memory_delete", {"memory_id": await memory_of(two, "ana")})

        assert "There is no memory" in text
        assert (await called(stranger, "memory_stats"))["data"]["total"] == 0


class TestAgents:
    async def test_what_all_users_share_is_found_and_not_deleted(self, two) -> None:
        agent_id = ok(await two.get("/sessions/s1"))["agent_id"]
        shared = await save(
            two, "Refunds take five working days.", user_id=None, agent_id=agent_id, scope="agent"
        )

        assert "Refunds" in await result(two, "memory_search", {"query": "refunds"})
        text = await refusal(two, "memory_delete", {"memory_id": shared["memory_id"]})

        assert "cannot be changed in a conversation" in text
        assert len(await listed(two, scope="agent")) == 1

    async def test_what_is_private_to_another_agent_is_neither_found_nor_deleted(self, two) -> None:
        ok(await two.post("/agents", json={"agent_id": "rival", "agent_name": "R"}), 201)
        private = await save(two, "Ana plans a surprise party.", agent_id="rival")
        await append(two, "s3", "Hello.", agent_id="rival")

        assert "party" not in await result(two, "memory_search", {"query": "surprise party"})
        told = {"memory_id": private["memory_id"]}
        assert "There is no memory" in await refusal(two, "memory_delete", told)
        own = {"session_id": "s3"}
        assert "party" in await result(two, "memory_search", {"query": "surprise party"}, **own)
        assert "Deleted" in await result(two, "memory_delete", told, **own)

    async def test_conversations_with_another_agent_are_not_found(self, two) -> None:
        ok(await two.post("/agents", json={"agent_id": "rival", "agent_name": "R"}), 201)
        await append(two, "s3", "My kayak has a leak.", agent_id="rival")

        assert "leak" not in await result(two, "conversation_search", {"query": "kayak leak"})


class TestProjects:
    @pytest.fixture
    async def team(self, two) -> AsyncClient:
        """A session s4 of Ana's in a project of Ana and Ben, and s5 of Cleo's, who is no member."""
        body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
        ok(await two.post("/projects", json=body), 201)
        ok(await two.put("/projects/apollo/members/ben", json={"role": "viewer"}))
        for session_id, user_id in (("s4", "ana"), ("s5", "cleo"), ("s6", "ben")):
            await append(two, session_id, "Hello.", user_id=user_id, project_id="apollo")
        return two

    async def test_members_find_and_save_what_is_the_projects(self, team) -> None:
        told = {"content": "Apollo ships in March.", "scope": "project"}

        await result(team, "memory_save", told, session_id="s4")

        text = await result(team, "memory_search", {"query": "Apollo"}, session_id="s6")
        assert "Apollo ships in March." in text

    async def test_whoever_is_no_member_neither_finds_nor_saves(self, team) -> None:
        told = {"content": "Apollo ships in March.", "scope": "project"}
        await result(team, "memory_save", told, session_id="s4")

        text = await result(team, "memory_search", {"query": "Apollo"}, session_id="s5")
        refused = await refusal(team, "memory_save", told, session_id="s5")

        assert "March" not in text
        assert "use the scope user or session" in refused

    async def test_a_viewer_is_told_that_it_may_only_read(self, team) -> None:
        told = {"content": "Apollo ships in May, after all.", "scope": "project"}

        assert "may only read" in await refusal(team, "memory_save", told, session_id="s6")

    async def test_only_its_author_deletes_what_is_the_projects(self, team) -> None:
        told = {"content": "Apollo ships in March.", "scope": "project"}
        saved = (await called(team, "memory_save", told, session_id="s4"))["data"]["memory_id"]

        text = await refusal(team, "memory_delete", {"memory_id": saved}, session_id="s6")

        assert "may only read" in text
        await result(team, "memory_delete", {"memory_id": saved}, session_id="s4")
