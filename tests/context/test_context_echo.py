"""What stood in a context and is said back is no news; what the user adds to it is."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from tests.support.api import append, every_page, execute, ok, save
from tests.support.chat_behaviours import entry, extracts
from tests.support.databases import migrated_database, served
from tests.support.model_service import app_of, asking
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.patience import PATIENCE
from tests.support.service import USAGE_FLUSH, client_of
from tests.support.tenants import make_tenant
from tests.support.tools import called
from tests.support.working import extracted, working

PEANUTS = "The user is allergic to peanuts."
MUNICH = "The user lives in Munich."


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
    return await migrated_database(postgres, "echoes")


@pytest.fixture(scope="module")
async def model_runtime(dsn: str, running_server: OpenAIServer) -> AsyncIterator[Runtime]:
    settings = asking(
        running_server,
        extraction_model="openai/reader",
        max_extractions=50,
    )
    async with open_runtime(settings, served(dsn), usage_flush=USAGE_FLUSH) as opened:
        yield opened


@pytest.fixture
async def client(model_runtime: Runtime) -> AsyncIterator[AsyncClient]:
    owner = await make_tenant(model_runtime)
    async with (
        app_of(model_runtime) as application,
        client_of(application, owner.key) as opened,
    ):
        opened.tenant_id = owner.tenant_id
        yield opened


@pytest.fixture
async def worker(model_runtime: Runtime, dsn: str):
    async with working(model_runtime, dsn, profiles=False) as running:
        yield running


@pytest.fixture
async def by_rules(client: AsyncClient) -> None:
    """The session's agent reads without a model."""
    body = {"agent_id": "plain", "agent_name": "Plain", "config": {"model": "rules"}}
    ok(await client.post("/agents", json=body), 201)


async def inject(client: AsyncClient, dsn: str) -> list[str]:
    """Ask for a context and wait until it is noted; ids of the memories in it."""
    used = ok(await client.post("/sessions/talk/context", json={}))["used"]
    return await noted(client, dsn, [one["memory_id"] for one in used])


async def look_up(client: AsyncClient, dsn: str, query: str, **asked: Any) -> list[str]:
    """Let the model search, and wait until it is noted; ids of the memories it was told."""
    answer = await called(client, "memory_search", {"query": query}, session_id="talk", **asked)
    assert answer["ok"]
    return await noted(client, dsn, [one["memory_id"] for one in answer["data"]["items"]])


async def noted(client: AsyncClient, dsn: str, ids: list[str]) -> list[str]:
    async with asyncio.timeout(PATIENCE):
        while True:
            rows = await execute(
                dsn,
                "SELECT memory_id FROM context_injections WHERE tenant_id = $1",
                client.tenant_id,
            )
            if {row["memory_id"] for row in rows} >= set(ids):
                return ids
            await asyncio.sleep(0.02)


async def texts(client: AsyncClient, **params: Any) -> list[str]:
    rows = await every_page(client, "/memories", user_id="ana", **params)
    return sorted(row["content"] for row in rows)


async def codes(client: AsyncClient) -> list[str]:
    rows = await every_page(client, "/memories/decisions", user_id="ana")
    return [code for row in rows for code in row["codes"]]


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def proposes(text: str):
    """A model that takes a restatement for news, with the user's last words as evidence."""
    return extracts(
        lambda found: [entry(text, [one for one in found if one["role"] == "user"][-1]["id"])]
    )


TALK = (
    "What shall I cook?",
    assistant("A curry; since you are allergic to peanuts I left them out."),
    "Good that you left the peanuts out.",
    assistant("Enjoy it."),
)


class TestWithAModel:
    async def test_what_was_injected_and_is_said_back_is_not_stored_again(
        self, client, worker, chat, dsn
    ):
        await save(client, PEANUTS)
        await append(client, "talk", TALK[0])
        assert len(await inject(client, dsn)) == 1
        chat.script(proposes("The user has an allergy: peanuts."))
        await append(client, "talk", *TALK[1:])
        await extracted(client, "talk")

        assert await texts(client) == [PEANUTS]
        assert await codes(client) == ["echo"]
        # The model was told, too, what is known.
        assert PEANUTS in str(chat.requests[-1].body)

    async def test_what_a_tool_told_and_is_said_back_is_not_stored_again(
        self, client, worker, chat, dsn
    ):
        await save(client, PEANUTS)
        await append(client, "talk", TALK[0])
        assert len(await look_up(client, dsn, "What can she not eat? Peanuts?")) == 1
        chat.script(proposes("The user has an allergy: peanuts."))
        await append(client, "talk", *TALK[1:])
        await extracted(client, "talk")

        assert await texts(client) == [PEANUTS]
        assert await codes(client) == ["echo"]

    async def test_what_a_tool_had_no_room_to_tell_is_not_noted(self, client, worker, dsn):
        for number in range(4):
            await save(client, f"The cat number {number} likes " + f"fish{number} " * 40)
        await append(client, "talk", TALK[0])

        told = await look_up(client, dsn, "cat", max_tokens=150)

        assert 0 < len(told) < 4
        rows = await execute(
            dsn, "SELECT memory_id FROM context_injections WHERE tenant_id = $1", client.tenant_id
        )
        assert {row["memory_id"] for row in rows} == set(told)

    async def test_without_the_injection_the_same_words_are_no_echo(
        self, client, worker, chat, dsn
    ):
        chat.script(proposes("The user has an allergy: peanuts."))
        await append(client, "talk", *TALK)
        await extracted(client, "talk")

        assert "echo" not in await codes(client)
        assert await texts(client) == ["The user has an allergy: peanuts."]

    async def test_what_the_user_adds_is_stored(self, client, worker, chat, dsn):
        await save(client, PEANUTS)
        await append(client, "talk", TALK[0])
        await inject(client, dsn)
        chat.script(proposes("The user is allergic to sesame."))
        await append(client, "talk", TALK[1], "I am allergic to sesame too.", TALK[3])
        await extracted(client, "talk")

        assert await texts(client) == [PEANUTS, "The user is allergic to sesame."]

    async def test_the_mistake_of_a_correction_is_told_from_news_too(
        self, client, worker, chat, dsn
    ):
        await save(client, "Her cat is called Miso.", memory_type="correction",
                   source_error="The cat is called Momo.")  # fmt: skip
        await append(client, "talk", "How is my cat?")
        await inject(client, dsn)
        chat.script(proposes("The cat is called Momo."))
        await append(client, "talk", assistant("Miso, whom I called Momo, is well."), "Good.",
                     assistant("Yes."))  # fmt: skip
        await extracted(client, "talk")

        assert await texts(client) == ["Her cat is called Miso."]


@pytest.mark.usefixtures("by_rules")
class TestByRules:
    async def said(self, client: AsyncClient, *messages: Any) -> None:
        await append(client, "talk", *messages, agent_id="plain")
        await extracted(client, "talk")

    async def test_a_statement_said_back_by_both_sides_is_stored_once(self, client, worker, dsn):
        await save(client, MUNICH)
        await append(client, "talk", "Hello there.", agent_id="plain")
        await inject(client, dsn)

        await self.said(client, assistant("You live in Munich."), "I live in Munich.",
                        assistant("I know."))  # fmt: skip

        assert await texts(client) == [MUNICH]

    async def test_what_was_replaced_may_be_said_anew(self, client, worker, dsn):
        await save(client, MUNICH)
        await append(client, "talk", "Hello there.", agent_id="plain")
        await inject(client, dsn)
        [munich] = await every_page(client, "/memories", user_id="ana")
        body = {"content": "The user lives in Berlin."}
        path = f"/memories/{munich['memory_id']}/supersede"
        ok(await client.post(path, json=body), 201)

        await self.said(client, "I live in Munich.", assistant("I see."))

        assert "I live in Munich." in await texts(client)

    async def test_what_was_deleted_tells_nothing_any_more(self, client, worker, dsn):
        await save(client, MUNICH)
        await append(client, "talk", "Hello there.", agent_id="plain")
        [memory_id] = await inject(client, dsn)
        assert (await client.delete(f"/memories/{memory_id}")).is_success

        await self.said(client, "I live in Munich.", assistant("I see."))

        assert await texts(client) == ["I live in Munich."]
