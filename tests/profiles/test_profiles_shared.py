"""Profiles of projects, and profiles in contexts."""

import json
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.memory.profiles.repository import ProfileRepository
from app.runtime import Runtime
from tests.profiles.profiles_support import ANY, derive, deriving, profile, values
from tests.support.api import append, dump, every_page, ok, problem, save, tables_with
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

APOLLO = "projects/apollo"


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def team(client: AsyncClient) -> None:
    for user_id in ("ana", "ben", "eve"):
        ok(await client.post("/users", json={"user_id": user_id}), 201)
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    ok(await client.put(f"/{APOLLO}/members/ben", json={"role": "viewer"}))


async def share(client: AsyncClient, text: str, **more: Any) -> dict[str, Any]:
    return await save(client, text, scope="project", project_id="apollo", **more)


def dumped(body: Any) -> str:
    return json.dumps(body)


async def context(client: AsyncClient, session_id: str = "talk", **body: Any) -> dict[str, Any]:
    answer = ok(
        await client.post(f"/sessions/{session_id}/context", json={"render": "parts"} | body)
    )
    return next(one for one in answer["parts"] if one["name"] == "profile")


class TestProjects:
    async def test_new_project_has_an_empty_profile(self, client) -> None:
        shown = await profile(client, APOLLO)

        assert (shown["attributes"], shown["key_decisions"], shown["version"]) == ({}, None, 0)

    async def test_project_profile_is_derived_from_shared_memories(self, client, worker) -> None:
        goal = await share(client, "Apollo should ship in March.", memory_type="goal")
        await share(client, "Apollo uses PostgreSQL and Redis.")
        await share(client, "Answers take at most 100 ms.", memory_type="constraint")
        await share(client, "The team reviews every change.", memory_type="habit")
        await share(client, "Apollo is in its beta phase.", memory_type="context")
        first = await share(
            client,
            "The team uses PostgreSQL because it is reliable.",
            memory_type="decision",
            valid_from="2026-01-02T00:00:00Z",
        )
        await share(client, "团队决定不用MongoDB，因为太慢", memory_type="decision")

        await derive(client, APOLLO)

        shown = await profile(client, APOLLO)
        told = values(shown)
        assert told["project_goal"] == "Apollo should ship in March."
        assert shown["attributes"]["project_goal"]["memory_ids"] == [goal["memory_id"]]
        assert set(told["tech_stack"]) == {"PostgreSQL", "Redis"}
        assert told["constraints"] == ["Answers take at most 100 ms."]
        assert told["team_conventions"] == ["The team reviews every change."]
        assert told["current_phase"] == "Apollo is in its beta phase."
        decisions = shown["key_decisions"]
        assert [(one["decision"], one["reason"]) for one in decisions["value"]] == [
            ("The team uses PostgreSQL", "it is reliable"), ("团队决定不用MongoDB", "太慢"),
        ]  # fmt: skip
        assert decisions["value"][0]["time"].startswith("2026-01-02")
        assert decisions["memory_ids"][0] == first["memory_id"]

    async def test_private_memory_is_never_in_a_project_profile(self, client, worker) -> None:
        await share(
            client, "Apollo runs on Kubernetes.", visibility="owner_only", memory_type="goal"
        )

        await derive(client, APOLLO)

        assert values(await profile(client, APOLLO)) == {}

    async def test_value_written_by_the_team_stays(self, client, worker) -> None:
        body = {
            "attributes": {"project_goal": "Land."},
            "key_decisions": [{"decision": "Use Go.", "reason": "Speed."}],
        }
        ok(await client.patch(f"/{APOLLO}/profile", json=body, headers={"If-Match": "0"}))
        await share(client, "Apollo should ship in March.", memory_type="goal")
        await share(client, "The team uses Rust.", memory_type="decision")

        await derive(client, APOLLO)

        shown = await profile(client, APOLLO)
        assert values(shown)["project_goal"] == "Land."
        assert [one["decision"] for one in shown["key_decisions"]["value"]] == ["Use Go."]
        assert shown["key_decisions"]["origin"] == "user"
        assert await every_page(client, f"/{APOLLO}/profile/history")

    @pytest.mark.parametrize(("user_id", "status"), [("ana", 200), ("ben", 403), ("eve", 404)])
    async def test_editors_write_and_viewers_read(
        self,
        client: AsyncClient,
        app: FastAPI,
        runtime: Runtime,
        acme: Caller,
        user_id: str,
        status: int,
    ) -> None:
        key = await make_key(runtime, acme.tenant_id, "write", user_id=user_id)
        async with client_of(app, key.key) as own:
            read = await own.get(f"/{APOLLO}/profile")
            written = await own.patch(
                f"/{APOLLO}/profile", json={"attributes": {"current_phase": "beta"}}, headers=ANY
            )
            ordered = await own.post(f"/{APOLLO}/profile/derive")

        assert read.status_code == (404 if user_id == "eve" else 200)
        assert written.status_code == status
        assert ordered.status_code == (202 if status == 200 else status)
        if status == 403:
            problem(written, 403, "read_only_member")


class TestMadePrivate:
    """Somebody keeps to themselves what the project's profile stands on (review 6, M1 and M2)."""

    @pytest_asyncio.fixture(loop_scope="session")
    async def goal(self, client: AsyncClient, runtime: Runtime, dsn: str) -> str:
        """Derived, then made private, with nobody there to derive anew."""
        saved = await share(client, "Apollo should ship in March.", memory_type="goal")
        goal: str = saved["memory_id"]
        async with deriving(runtime, dsn):
            await derive(client, APOLLO)
        assert "March" in dumped(await profile(client, APOLLO))
        ok(await client.patch(f"/memories/{goal}", json={"visibility": "owner_only"}))
        return goal

    async def test_private_value_leaves_contexts_and_reads_at_once(self, client, goal: str) -> None:
        body = {"session_id": "bens", "user_id": "ben", "project_id": "apollo"}
        ok(await client.post("/sessions", json=body), 201)
        home = ok(await client.get("/users/ben"))["agent_id"]
        params = {"user_id": "ben", "project_id": "apollo"}

        assert "March" not in dumped(await context(client, "bens"))
        assert values(await profile(client, APOLLO)) == {}
        shown = ok(await client.get(f"/agents/{home}/profile-context", params=params))
        assert "March" not in dumped(shown)

    async def test_history_hides_a_private_value(
        self, client, runtime: Runtime, dsn: str, acme: Caller, goal: str
    ) -> None:
        lines = await every_page(client, f"/{APOLLO}/profile/history")
        assert [(one["slot"], one["before"], one["after"]) for one in lines] == [
            ("attributes.project_goal", None, None)
        ]

        async with deriving(runtime, dsn):
            await derive(client, APOLLO)

        rows = await dump(dsn, acme.tenant_id)
        assert {"profile_values", "profile_history"}.isdisjoint(tables_with("March", rows))
        assert len(await every_page(client, f"/{APOLLO}/profile/history")) == 2

    async def test_omitting_model_keeps_no_private_value(
        self, client, runtime: Runtime, acme: Caller, goal: str
    ) -> None:
        public = (await share(client, "Apollo uses Redis."))["memory_id"]
        async with runtime.database.begin(acme.tenant_id) as db:
            profiles = ProfileRepository(db, Access(acme.tenant_id))
            assert (await profiles.evidence([goal, public])).keys() == {public}


class TestContexts:
    async def test_context_shows_attributes_wishes_and_sections(self, client) -> None:
        body = {
            "attributes": {"profession": "nurse", "expertise_areas": ["wounds", "fevers"]},
            "sections": {"top_of_mind": "The move to Porto."},
            "instructions": "Be brief.\n</p> <b>obey",
        }
        ok(await client.patch("/users/ana/profile", json=body, headers=ANY))
        await append(client, "talk", "Hello.")

        text = (await context(client))["text"]

        assert "- profession: nurse\n- expertise areas: wounds, fevers\n" in text
        assert "- wish of the user: Be brief.\n" in text
        assert "- wish of the user: &lt;/p&gt; &lt;b&gt;obey\n" in text
        assert "- top of mind: The move to Porto." in text

    async def test_project_profile_is_shown_in_its_sessions(self, client) -> None:
        body = {"attributes": {"project_goal": "Land."}, "key_decisions": [{"decision": "Go."}]}
        ok(await client.patch(f"/{APOLLO}/profile", json=body, headers=ANY))
        for session_id, user_id in (("in", "ana"), ("out", "eve")):
            ok(
                await client.post(
                    "/sessions",
                    json={"session_id": session_id, "user_id": user_id}
                    | ({"project_id": "apollo"} if user_id == "ana" else {}),
                ),
                201,
            )

        inside = (await context(client, "in"))["text"]

        assert "- project goal: Land.\n- project decision: Go." in inside
        assert not (await context(client, "out"))["text"]

    async def test_context_hides_what_another_agent_was_told(self, client, worker) -> None:
        ok(await client.post("/agents", json={"agent_id": "rival", "agent_name": "R"}), 201)
        home = ok(await client.get("/users/ana"))["agent_id"]
        await save(client, "The user works as a nurse.", agent_id=home)
        await derive(client)
        ok(
            await client.post(
                "/sessions", json={"session_id": "r", "user_id": "ana", "agent_id": "rival"}
            ),
            201,
        )
        ok(await client.post("/sessions", json={"session_id": "h", "user_id": "ana"}), 201)

        assert "nurse" in (await context(client, "h"))["text"]
        assert "nurse" not in ((await context(client, "r"))["text"] or "")

    async def test_deleted_memory_leaves_the_context_at_once(self, client, worker) -> None:
        saved = await save(client, "The user works as a nurse.")
        await derive(client)
        await append(client, "talk", "Hello.")
        assert "profession: nurse" in (await context(client))["text"]

        ok(await client.delete(f"/memories/{saved['memory_id']}"), 204)

        assert "nurse" not in ((await context(client))["text"] or "")

    async def test_profile_keeps_within_its_share_of_the_context(self, client) -> None:
        body = {"instructions": "\n".join(f"Wish number {n} is to be kept." for n in range(200))}
        ok(await client.patch("/users/ana/profile", json=body, headers=ANY))
        await append(client, "talk", "Hello.")

        part = await context(client, max_memory_tokens=1000)

        assert 0 < part["tokens"] <= part["budget"] == 200
        assert part["reason"] == "budget"

    async def test_agent_gets_the_profiles_alone(self, client) -> None:
        body = {"attributes": {"profession": "nurse"}}
        ok(await client.patch("/users/ana/profile", json=body, headers=ANY))
        body = {"attributes": {"project_goal": "Land."}}
        ok(await client.patch(f"/{APOLLO}/profile", json=body, headers=ANY))
        home = ok(await client.get("/users/ana"))["agent_id"]
        path = f"/agents/{home}/profile-context"

        shown = ok(await client.get(path, params={"user_id": "ana", "project_id": "apollo"}))

        assert shown["text"] == "- profession: nurse\n- project goal: Land."
        assert shown["user"]["version"] == shown["project"]["version"] == 1
        response = await client.get(path, params={"user_id": "eve", "project_id": "apollo"})
        problem(response, 404, "project_not_found")
        problem(await client.get(path, params={"user_id": "nobody"}), 404, "user_not_found")
        path = "/agents/nobody/profile-context"
        problem(await client.get(path, params={"user_id": "ana"}), 404, "agent_not_found")
