"""mem0's hosted API over HTTP: profiles, the jobs that derive them, and their schema."""

from collections.abc import AsyncIterator, Iterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime, open_runtime
from tests.support.api import every_page, ok
from tests.support.chat_behaviours import says
from tests.support.databases import migrated_database, served
from tests.support.mem0 import mem0_client
from tests.support.model_service import app_of, asking
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant
from tests.support.working import over, working

JOBS = "/v2/profiles/jobs/"
SETTINGS = "/v2/profiles/settings/"
DIET = {
    "type": "object",
    "properties": {"diet": {"type": "string", "description": "What the user eats."}},
}


@pytest.fixture
async def mem0(app: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with mem0_client(app, acme.key) as opened:
        yield opened


async def remember(mem0: AsyncClient, text: str, user_id: str = "ana") -> None:
    body = {"messages": text, "infer": False, "user_id": user_id}
    ok(await mem0.post("/v3/memories/add/", json=body))


def trigger(user_id: str = "ana") -> dict:
    return {"operation": "trigger", "entity_type": "user", "entity_id": user_id}


async def profile(mem0: AsyncClient, user_id: str = "ana") -> dict:
    return ok(await mem0.get(f"/v2/entities/user/{user_id}/profile/"))


def own_ids(job: dict) -> list[str]:
    ids = job["job_id"].removeprefix("sample.").split(".")
    return [f"job_{one.replace('-', '')}" for one in ids]


class TestProfiles:
    async def test_a_profile_is_derived_on_request(
        self, mem0: AsyncClient, client: AsyncClient, runtime: Runtime, dsn: str
    ) -> None:
        await remember(mem0, "I am a nurse.")
        waiting = await profile(mem0)
        ordered = ok(await mem0.post(JOBS, json=trigger()), 202)
        assert (ordered["operation"], ordered["replayed"]) == ("trigger", False)
        before = ok(await mem0.get(ordered["status_url"]))["job"]
        async with working(runtime, dsn):
            for job_id in own_ids(ordered):
                await over(client, job_id)
        after = ok(await mem0.get(f"{JOBS}{ordered['job_id']}/"))["job"]

        assert (waiting["profile"], waiting["status"]) == ({}, "pending")
        assert (before["status"], before["total"], before["completed"]) == ("pending", 1, 0)
        assert (after["status"], after["succeeded"], after["completed"]) == ("succeeded", 1, 1)
        known = await profile(mem0)
        assert known["status"] == "succeeded"
        assert "nurse" in str(known["profile"])
        assert (known["entity_type"], known["entity_id"]) == ("user", "ana")
        assert known["generation_count"] > 0
        assert known["updated_at"] is not None

    async def test_nobody_and_nothing_are_told_apart(
        self, mem0: AsyncClient, client: AsyncClient
    ) -> None:
        ok(await client.post("/users", json={"user_id": "eva"}), 201)
        assert (await profile(mem0, "eva"))["status"] == "insufficient_data"
        assert (await mem0.get("/v2/entities/user/nobody/profile/")).status_code == 404
        assert (await mem0.get("/v2/entities/user/al%2Fice/profile/")).status_code == 404
        assert (await mem0.post(JOBS, json=trigger("nobody"))).status_code == 404

    async def test_an_order_is_made_once_for_its_key(
        self, mem0: AsyncClient, client: AsyncClient, runtime: Runtime, dsn: str
    ) -> None:
        await remember(mem0, "I am a nurse.")
        headers = {"Idempotency-Key": "once"}
        first = ok(await mem0.post(JOBS, json=trigger(), headers=headers), 202)
        async with working(runtime, dsn):
            await over(client, own_ids(first)[0])
        again = ok(await mem0.post(JOBS, json=trigger(), headers=headers), 202)
        other = await mem0.post(JOBS, json=trigger("bo"), headers=headers)

        assert again == first | {"replayed": True}
        assert (other.status_code, other.json()["code"]) == (400, "idempotency_key_reused")
        jobs = await every_page(client, "/jobs", kind="profile", user_id="ana")
        assert [job["job_id"] for job in jobs] == own_ids(first)

    async def test_a_sample_takes_the_newest_users(self, mem0: AsyncClient) -> None:
        sample = {"operation": "sample", "entity_type": "user"}
        nobody = await mem0.post(JOBS, json=sample)
        assert (nobody.status_code, nobody.json()["code"]) == (400, "no_counterpart")
        for user_id in ("ana", "bo", "chen", "dan"):
            await remember(mem0, "I am a nurse.", user_id)

        headers = {"Idempotency-Key": "sample"}
        for limit, users in ((None, ["bo", "chen", "dan"]), (1, ["dan"])):
            asked = sample | ({} if limit is None else {"limit": limit})
            ordered = ok(await mem0.post(JOBS, json=asked), 202)
            assert (ordered["entity_ids"], ordered["sampled"]) == (users, len(users))
            read = ok(await mem0.get(ordered["status_url"]))["job"]
            assert (read["operation"], read["total"]) == ("sample", len(users))
        first = ok(await mem0.post(JOBS, json=sample, headers=headers), 202)
        await remember(mem0, "I am a nurse.", "eva")
        again = ok(await mem0.post(JOBS, json=sample, headers=headers), 202)
        assert again == first | {"replayed": True}

    async def test_orders_that_make_no_sense_are_refused(self, mem0: AsyncClient) -> None:
        for body in (
            {"operation": "trigger", "entity_type": "user"}, trigger() | {"limit": 2},
            trigger() | {"entity_type": "agent"}, {"operation": "sample"},
            {"operation": "sample", "entity_type": "user", "entity_id": "ana"},
        ):  # fmt: skip
            assert (await mem0.post(JOBS, json=body)).status_code == 400, body
        await remember(mem0, "I am a nurse.")
        for limit, status in ((0, 400), (1, 202), (9, 202), (10, 202), (11, 400)):
            body = {"operation": "sample", "entity_type": "user", "limit": limit}
            assert (await mem0.post(JOBS, json=body)).status_code == status, limit

    async def test_only_jobs_of_profiles_are_shown(
        self, mem0: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
    ) -> None:
        body = {"messages": "I live in Lisbon.", "user_id": "ana"}
        other = ok(await mem0.post("/v3/memories/add/", json=body))["event_id"]
        await remember(mem0, "I am a nurse.")
        ordered = ok(await mem0.post(JOBS, json=trigger()), 202)["job_id"]
        many = ".".join([ordered] * 11)
        for job_id in (other, f"{ordered}.{other}", many, "x", "sample."):
            response = await mem0.get(f"{JOBS}{job_id}/")
            assert response.status_code == 404, job_id
        bo = await make_key(runtime, acme.tenant_id, "write", user_id="bo")
        async with mem0_client(app, bo.key) as theirs:
            assert (await theirs.get(f"{JOBS}{ordered}/")).status_code == 404
            assert (await theirs.get("/v2/entities/user/ana/profile/")).status_code == 404


class TestSettings:
    async def test_there_is_no_schema_where_no_model_would_fill_it(self, mem0: AsyncClient) -> None:
        shown = ok(await mem0.get(SETTINGS))
        assert shown["enabled"] is True
        assert shown["entities"]["user"] == {"schema": None, "custom_instructions": None}
        assert shown["capabilities"] == {"schema": False}
        await remember(mem0, "I am a nurse.")
        body = {"entities": {"user": {"schema": DIET}}}
        response = await mem0.post(SETTINGS, json=body)
        assert response.json()["code"] == "no_counterpart"
        assert "model" in response.json()["detail"]

    async def test_what_has_no_counterpart_is_refused(self, mem0: AsyncClient) -> None:
        for body in (
            {"enabled": False}, {"entities": {"user": {"custom_instructions": "Be brief."}}},
        ):  # fmt: skip
            response = await mem0.post(SETTINGS, json=body)
            assert (response.status_code, response.json()["code"]) == (400, "no_counterpart")
        for body in ({"schema": DIET}, {"entities": {"agent": {"schema": DIET}}}):
            assert (await mem0.post(SETTINGS, json=body)).status_code == 400
        unchanged = {"enabled": True, "entities": {"user": {"custom_instructions": None}}}
        assert ok(await mem0.post(SETTINGS, json=unchanged)) == ok(await mem0.get(SETTINGS))


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture(scope="module")
async def with_model(postgres, running_server: OpenAIServer):
    """A service whose profiles a scripted model derives, on a database of its own."""
    dsn = await migrated_database(postgres, "mem0_profiles")
    settings = asking(running_server, extraction_model="openai/teller")
    async with open_runtime(settings, served(dsn)) as opened, app_of(opened) as application:
        yield opened, application, dsn


class TestSchema:
    async def test_properties_of_the_schema_are_filled_by_the_model(
        self, with_model, running_server: OpenAIServer
    ) -> None:
        runtime, app, dsn = with_model
        owner = await make_tenant(runtime)
        async with mem0_client(app, owner.key) as mem0, client_of(app, owner.key) as client:
            await remember(mem0, "I eat no meat.")
            body = {"entities": {"user": {"schema": DIET}}}
            shown = ok(await mem0.post(SETTINGS, json=body))
            assert shown["entities"]["user"]["schema"] == DIET
            assert shown["capabilities"] == {"schema": True}
            assert ok(await mem0.get(SETTINGS)) == shown

            running_server.chat.otherwise = says(
                {
                    "values": [
                        {
                            "slot": "slots.profile.diet", "text": "eats no meat",
                            "entries": None, "evidence": ["m1"], "gone": None,
                        }
                    ]
                }
            )  # fmt: skip
            ordered = ok(await mem0.post(JOBS, json=trigger()), 202)
            async with working(runtime, dsn):
                done = await over(client, own_ids(ordered)[0])
            assert done["status"] == "succeeded", done
            assert (await profile(mem0))["profile"]["diet"] == "eats no meat"

            ok(await mem0.post(SETTINGS, json={"entities": {"user": {"schema": None}}}))
            assert ok(await mem0.get(SETTINGS))["entities"]["user"]["schema"] is None

    async def test_the_agents_other_slots_and_settings_stay(self, with_model) -> None:
        runtime, app, _ = with_model
        owner = await make_tenant(runtime)
        own = {"topic": "work", "sub_topic": "team", "description": "The team."}
        async with mem0_client(app, owner.key) as mem0, client_of(app, owner.key) as client:
            await remember(mem0, "I eat no meat.")
            config = {"profile_slots": [own], "note": "kept"}
            ok(await client.patch("/agents/default", json={"config": config}))
            ok(await mem0.post(SETTINGS, json={"entities": {"user": {"schema": DIET}}}))
            now = ok(await client.get("/agents/default"))["config"]
            assert now["note"] == "kept"
            assert [slot["sub_topic"] for slot in now["profile_slots"]] == ["team", "diet"]
            ok(await mem0.post(SETTINGS, json={"entities": {"user": {"schema": None}}}))
            assert ok(await client.get("/agents/default"))["config"] == config

    async def test_schemas_of_more_than_described_texts_are_refused(self, with_model) -> None:
        runtime, app, _ = with_model
        owner = await make_tenant(runtime)
        text = {"type": "string", "description": "What."}
        wrong = [
            {"type": "array", "properties": {"a": text}}, {"type": "object"},
            {"properties": {"a": text}, "required": ["a"]}, {"properties": {"Diet": text}},
            {"properties": {"a": {"type": "number", "description": "What."}}},
            {"properties": {"a": {"type": "string"}}}, {"properties": {"a": text | {"enum": []}}},
        ]  # fmt: skip
        async with mem0_client(app, owner.key) as mem0:
            await remember(mem0, "I eat no meat.")
            for schema in wrong:
                body = {"entities": {"user": {"schema": schema}}}
                response = await mem0.post(SETTINGS, json=body)
                assert (response.status_code, response.json()["code"]) == (400, "no_counterpart")
            for count, status in ((49, 200), (50, 200), (51, 400)):
                schema = {"properties": {f"field_{number}": text for number in range(count)}}
                body = {"entities": {"user": {"schema": schema}}}
                assert (await mem0.post(SETTINGS, json=body)).status_code == status, count
