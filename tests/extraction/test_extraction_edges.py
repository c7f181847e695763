"""What happens at the edges: stop words, refusals in the background, disabled people, reopening."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient

from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import append, every_page, execute, fields, listed, ok, problem, save
from tests.support.databases import served
from tests.support.model_service import app_of
from tests.support.patience import PATIENCE
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.working import extracted, over, working

MUNICH = "I live in Munich."
REPLY = {"role": "assistant", "content": "I see."}


async def texts(client: AsyncClient, **params) -> list[str]:
    rows = await every_page(client, "/memories", user_id="ana", **params)
    return sorted(row["content"] for row in rows)


async def the_job(client: AsyncClient, kind: str = "extract") -> dict:
    [job] = ok(await client.get("/jobs", params={"kind": kind}))["items"]
    return job


class TestStopWords:
    @pytest.fixture
    async def strict(self, dsn: str) -> AsyncIterator[Runtime]:
        settings = Settings(_env_file=None, stop_words="classified, 机密")
        async with open_runtime(settings, served(dsn)) as runtime:
            yield runtime

    @pytest.fixture
    async def client(self, strict: Runtime) -> AsyncIterator[AsyncClient]:
        owner = await make_tenant(strict)
        async with app_of(strict) as application, client_of(application, owner.key) as opened:
            yield opened

    @pytest.mark.parametrize(
        "said", ["It is Classified: I live in Munich.", "机密：我住在慕尼黑。"]
    )
    async def test_a_message_with_one_is_stored_and_never_read(self, client, strict, dsn, said):
        answer = await append(client, "talk", said, REPLY)
        assert answer["extraction"]["reason"] == "stop_word"
        await append(client, "talk", "I have two dogs.", REPLY)
        async with working(strict, dsn):
            await extracted(client, "talk")

        assert len(ok(await client.get("/sessions/talk/messages"))["items"]) == 4
        assert len(await texts(client)) == 1

    async def test_a_memory_with_one_is_refused(self, client):
        body = {"messages": "The plan is classified.", "user_id": "ana", "infer": False}
        refused = problem(await client.post("/memories", json=body), 422, "gate_rejected")

        assert [one["code"] for one in refused["reasons"]] == ["stop_word"]


class TestInTheBackground:
    async def test_a_refused_text_is_an_answer_and_no_dead_job(self, client, worker, dsn, acme):
        secret = "sk-proj-" + "a1B2c3D4" * 6
        body = {"messages": f"My key is {secret}.", "user_id": "ana", "infer": False}
        accepted = ok(await client.post("/memories?async=true", json=body), 202)
        job = await over(client, accepted["job_id"])

        assert (job["status"], job["result"]) == ("succeeded", {"events": {"REJECT": 1}})
        rows = await execute(
            dsn,
            "SELECT 1 FROM jobs WHERE tenant_id = $1 AND payload::text LIKE '%sk-proj-%'",
            acme.tenant_id,
        )
        assert rows == []

    @pytest.mark.parametrize("kind", ["users", "agents"])
    async def test_work_for_somebody_disabled_waits(self, client, worker, kind):
        said = (await append(client, "talk", MUNICH, REPLY))["messages"][0]
        path = {"users": "/users/ana", "agents": f"/agents/{said['agent_id']}"}[kind]
        ok(await client.patch(path, json={"status": "disabled"}))
        ok(await client.post("/sessions/talk/end"))
        job = await until_deferred(client)

        assert job["deferred_reason"] == "disabled"
        assert await texts(client) == []

    async def test_what_was_said_before_a_pause_is_read_after_it(self, client, worker):
        await append(client, "talk", MUNICH, REPLY)
        ok(await client.patch("/sessions/talk", json={"memory_enabled": False}))
        ok(await client.post("/sessions/talk/end"))
        job = await until_deferred(client)
        assert job["deferred_reason"] == "memory_paused"
        ok(await client.patch("/sessions/talk", json={"memory_enabled": True}))
        await over(client, job["job_id"])

        assert any("Munich" in text for text in await texts(client))


async def until_deferred(client: AsyncClient) -> dict:
    async with asyncio.timeout(PATIENCE):
        while True:
            job = await the_job(client)
            if job["deferred_reason"]:
                return job
            await asyncio.sleep(0.05)


class TestTheEnd:
    async def test_end_of_a_session_names_the_job_that_reads_the_rest(self, client, worker):
        await append(client, "talk", MUNICH)
        ended = ok(await client.post("/sessions/talk/end"))

        assert (await over(client, ended["job_id"]))["status"] == "succeeded"
        assert ok(await client.post("/sessions/talk/end"))["job_id"] is None

    async def test_an_end_whose_job_was_cancelled_can_be_asked_for_again(
        self, client, runtime, dsn
    ):
        await append(client, "talk", MUNICH)
        first = ok(await client.post("/sessions/talk/end"))["job_id"]
        ok(await client.post(f"/jobs/{first}/cancel"))
        second = ok(await client.post("/sessions/talk/end"))["job_id"]
        assert second not in {None, first}
        async with working(runtime, dsn):
            await over(client, second)

        assert any("Munich" in text for text in await texts(client))

    async def test_a_cancelled_end_can_be_retried(self, client, runtime, dsn):
        await append(client, "talk", MUNICH)
        first = ok(await client.post("/sessions/talk/end"))["job_id"]
        ok(await client.post(f"/jobs/{first}/cancel"))
        ok(await client.post(f"/jobs/{first}/retry"))
        async with working(runtime, dsn):
            await over(client, first)

        assert any("Munich" in text for text in await texts(client))


class TestDemand:
    async def test_no_body_is_needed(self, client):
        await append(client, "talk", MUNICH, REPLY)

        assert ok(await client.post("/sessions/talk/extract"), 202)["scheduled"]

    async def test_deleted_messages_leave_nothing_to_read(self, client, worker):
        await append(client, "talk", MUNICH, REPLY)
        await extracted(client, "talk")
        later = await append(client, "talk", "I have two dogs.", REPLY)
        ids = [one["message_id"] for one in later["messages"]]
        ok(await client.post("/sessions/talk/messages/delete", json={"message_ids": ids}))

        assert (await extracted(client, "talk"))["done"]
        assert not (await extracted(client, "talk"))["scheduled"]


class TestInference:
    @for_each(
        ("name", "value"),
        [
            ("confidence", 0.9),
            ("evidence", ["m-1"]),
            ("on_duplicate", "allow"),
            ("valid_to", "2036-01-01T00:00:00Z"),
            ("attribute", "user.residence"),
        ],
    )
    @for_each("path", ["/memories", "/memories?async=true"])
    async def test_what_only_one_statement_can_have_is_refused_by_name(
        self, client, name, value, path
    ):
        body = {"messages": MUNICH, "user_id": "ana", name: value}
        refused = problem(await client.post(path, json=body), 422, "needs_infer_false")

        assert fields(refused) == [f"body.{name}"]
        assert await listed(client, user_id="ana") == []

    async def test_a_type_and_metadata_go_to_every_memory(self, client):
        body = {
            "messages": MUNICH,
            "user_id": "ana",
            "memory_type": "context",
            "metadata": {"topic": "home"},
            "external_id": "crm-7",
        }
        [outcome] = ok(await client.post("/memories", json=body), 201)["results"]

        memory = outcome["memory"]
        assert (memory["memory_type"], memory["external_id"]) == ("context", "crm-7")
        assert memory["metadata"]["topic"] == "home"

    async def test_inferred_memory_is_private_to_the_agent_that_is_named(self, client):
        body = {"messages": MUNICH, "user_id": "ana", "agent_id": "helper"}
        [outcome] = ok(await client.post("/memories", json=body), 201)["results"]

        assert outcome["memory"]["agent_id"] == "helper"

    async def test_what_a_person_saved_stands_beside_what_contradicts_it(self, client):
        await save(client, "The user lives in Munich.", memory_type="fact")
        body = {"messages": "I moved to Hamburg.", "user_id": "ana"}
        [outcome] = ok(await client.post("/memories", json=body), 201)["results"]

        assert outcome["event"] == "ADD"
        assert len(await texts(client)) == 2
