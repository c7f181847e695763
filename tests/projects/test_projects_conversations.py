"""Conversations in a project: what they teach it is held to the role of whoever speaks."""

from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from tests.support.api import append, every_page, ok
from tests.support.chat_behaviours import entry, extracts
from tests.support.databases import migrated_database, served
from tests.support.model_service import app_of, asking
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.working import extracted, over, working

REPLY = {"role": "assistant", "content": "I see."}


@pytest.fixture(scope="module")
def running_server():
    with openai_server() as server:
        yield server


@pytest.fixture
def chat(running_server: OpenAIServer):
    running_server.reset()
    return running_server.chat


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    """A database of this file alone: other tests' jobs would use up the script."""
    return await migrated_database(postgres, "project_models")


@pytest.fixture(scope="module")
async def model_runtime(dsn: str, running_server: OpenAIServer) -> AsyncIterator[Runtime]:
    settings = asking(running_server, extraction_model="openai/reader", model_timeout_seconds=60)
    async with open_runtime(settings, served(dsn)) as runtime:
        yield runtime


@pytest.fixture(scope="module")
async def model_app(model_runtime: Runtime):
    async with app_of(model_runtime) as application:
        yield application


@pytest.fixture
async def client(model_app, model_runtime: Runtime) -> AsyncIterator[AsyncClient]:
    owner = await make_tenant(model_runtime)
    async with client_of(model_app, owner.key) as opened:
        for user_id in ("keeper", "edda", "vera", "nora"):
            ok(await opened.post("/users", json={"user_id": user_id}), 201)
        body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "keeper"}
        ok(await opened.post("/projects", json=body), 201)
        for user_id, role in (("edda", "editor"), ("vera", "viewer")):
            ok(await opened.put(f"/projects/apollo/members/{user_id}", json={"role": role}))
        yield opened


@pytest.fixture
async def worker(model_runtime: Runtime, dsn: str):
    async with working(model_runtime, dsn, profiles=False) as running:
        yield running


def for_the_project(lines):
    return [
        entry(line["text"], line["id"], scope="project") for line in lines if line["role"] == "user"
    ]


@pytest.mark.parametrize("user_id", ["edda", "vera", "nora"])
async def test_what_may_not_be_shared_is_refused_and_the_job_succeeds(
    client, worker, chat, user_id: str
) -> None:
    chat.script(extracts(for_the_project))
    told = "The Apollo release is planned for the first of March."
    await append(client, "talk", told, REPLY, user_id=user_id, project_id="apollo")

    answer = await extracted(client, "talk")

    assert answer["status"] == "succeeded"
    rows = await every_page(client, "/memories", project_id="apollo", scope="project")
    verdicts = await every_page(client, "/memories/decisions", user_id=user_id)
    if user_id == "edda":
        assert [(row["content"], row["user_id"]) for row in rows] == [(told, "edda")]
        return
    assert rows == []
    assert [row["codes"] for row in verdicts] == [["scope_not_allowed"]]


async def test_who_lost_the_role_before_a_request_is_read_adds_nothing(
    client, model_runtime, dsn, chat
) -> None:
    chat.script(extracts(for_the_project))
    body = {
        "messages": "The Apollo release is in May.", "user_id": "edda", "scope": "project",
        "project_id": "apollo",
    }  # fmt: skip
    accepted = ok(await client.post("/memories", json=body, params={"async": True}), 202)
    ok(await client.put("/projects/apollo/members/edda", json={"role": "viewer"}))

    async with working(model_runtime, dsn, profiles=False):
        job = await over(client, accepted["job_id"])
    assert job["status"] == "dead"
    assert job["error_code"] == "read_only_member"
    assert await every_page(client, "/memories", project_id="apollo") == []
