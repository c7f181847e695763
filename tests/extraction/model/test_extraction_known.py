"""What the prompt of a run says besides the messages: names, and what is known near to them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.memory.extraction.known_memories import MOST_ATTRIBUTES
from tests.support.api import append, every_page, execute, ok, save
from tests.support.chat_behaviours import decides, entry, extracts, lines_of, remembers
from tests.support.openai_server import Endpoint
from tests.support.working import extracted

REPLY = {"role": "assistant", "content": "I see."}


@pytest.fixture
def chat(chat: Endpoint) -> Endpoint:
    chat.otherwise = remembers()
    return chat


async def told(client: AsyncClient, chat, *messages: Any, **members: Any) -> list[Mapping]:
    """What the last prompt says is known, after these messages of a request."""
    said = [{"content": each} if isinstance(each, str) else each for each in messages]
    body = {"messages": said, "user_id": "ana"} | members
    answer = await client.post("/memories", json=body)
    assert answer.is_success, answer.text
    return lines_of(chat.requests[-1], "known")


def texts(lines: list[Mapping]) -> set[str]:
    return {line["text"] for line in lines}


class TestKnown:
    async def test_what_is_near_by_its_words_or_its_vector(self, client, chat):
        income = "The user earns $85,000 a year."
        await save(client, income, attribute="user.income")
        mountain = {"content": "用户想去四姑娘山。", "said_at": "2026-03-02T10:00:00Z"}
        await save(client, [mountain])
        await save(client, "The user plays the cello.", valid_from="2021-01-01T00:00:00Z")
        await save(client, "The user's sister is called Mia.")

        shown = await told(client, chat, "They pay me $110,000 a year now!")
        assert shown == [{"kind": "known", "text": income, "attribute": "user.income"}]
        shown = await told(client, chat, "上周末爬了四姑娘山。")
        assert [(line["text"], line["said"]) for line in shown] == [
            ("用户想去四姑娘山。", "2026-03-02")
        ]
        shown = await told(client, chat, "I practise the cello every day.")
        assert [(line["text"], line["valid_from"]) for line in shown] == [
            ("The user plays the cello.", "2021-01-01")
        ]

    async def test_what_begins_later_with_its_day(self, client, chat):
        begins = datetime.now(UTC) + timedelta(days=7)
        await save(client, "The user plays in Oslo.", valid_from=begins.isoformat())

        [line] = await told(client, chat, "Shall I play in Oslo at all?")
        assert line["valid_from"] == begins.date().isoformat()

    async def test_of_others_nothing_and_nothing_that_counts_no_longer(self, client, chat, dsn):
        content = "The user plays the cello in {}."
        await save(client, content.format("Rome"), user_id="ben")
        await save(client, content.format("Oslo"), agent_id="painter")
        await save(client, content.format("Bern"), valid_to="2020-01-01T00:00:00Z")
        gone = await save(client, content.format("Lima"))
        ok(await client.delete(f"/memories/{gone['memory_id']}"), 204)
        await save(client, content.format("Graz"))
        said = "I play the cello in Rome, Oslo, Bern, Lima and Graz."

        assert texts(await told(client, chat, said)) == {content.format("Graz")}
        assert texts(await told(client, chat, said, agent_id="painter")) == {content.format("Oslo")}
        assert await told(client, chat, said, user_id="cleo") == []

    async def test_of_a_session_what_all_agents_of_the_user_know(self, client, worker, chat):
        await save(client, "The user plays the cello.")
        await save(client, "The user plays the cello badly.", agent_id="default")
        await append(client, "talk", "I play the cello.", REPLY)
        await extracted(client, "talk")

        assert texts(lines_of(chat.requests[0], "known")) == {"The user plays the cello."}

    async def test_names_of_attributes_in_use_the_newest_first(self, client, chat):
        for number in range(MOST_ATTRIBUTES + 1):
            attribute = f"user.size_{number}"
            await save(client, f"Size {number} fits the user.", attribute=attribute)
        await save(client, "The user's cat is called Tom.", attribute="cat.name", user_id="ben")
        await told(client, chat, "Good shoes are hard to find.")

        [line] = lines_of(chat.requests[-1], "attributes")
        assert line["names"] == [f"user.size_{n}" for n in range(MOST_ATTRIBUTES, 0, -1)]

    async def test_is_not_asked_for_where_nothing_was_said(self, client, worker, chat):
        await save(client, "The user says ok.", attribute="user.word")
        await append(client, "talk", "ok", "I'm a vet.", REPLY)
        await extracted(client, "talk")

        assert lines_of(chat.requests[0], "known") == []

    async def test_may_be_said_again_with_a_change(self, client, worker, chat):
        """It stood in the prompt of the run, and never in that of the assistant."""
        await save(client, "The user earns $85,000 a year.", attribute="user.income")
        chat.script(
            extracts(
                lambda found: [
                    entry(
                        "The user earns $110,000 a year.",
                        found[0]["id"],
                        attribute=lines_of(chat.requests[-1], "known")[0]["attribute"],
                    )
                ]
            ),
            decides(lambda *_: {"event": "ADD"}),
        )
        await append(client, "talk", "My pay is $110,000 a year now.", REPLY)
        job = await extracted(client, "talk")

        assert job["result"]["events"] == {"ADD": 1}
        rows = await every_page(client, "/memories", user_id="ana")
        assert {row["content"] for row in rows} == {
            "The user earns $85,000 a year.",
            "The user earns $110,000 a year.",
        }

    async def test_costs_one_call_of_the_embedder(self, client, chat, dsn, running_server):
        await execute(
            dsn,
            "UPDATE tenants SET config = jsonb_build_object('embedding', 'openai/alpha') "
            "WHERE tenant_id = $1",
            client.tenant_id,
        )
        await told(client, chat, *(f"I was in the city number {n}." for n in range(50)))

        [asked] = [one.texts for one in running_server.requests if "city" in one.texts[0]]
        assert asked == [f"I was in the city number {n}." for n in range(0, 50, 3)]


class TestNames:
    async def test_the_name_that_the_application_gave_the_user(self, client, worker, chat):
        agent = {"agent_id": "home", "agent_name": "Home"}
        ok(await client.post("/agents", json=agent), 201)
        user = {"user_id": "ana", "agent_id": "home", "user_name": "阿妮"}
        ok(await client.post("/users", json=user), 201)
        said = {"role": "user", "content": "I live in Munich.", "name": "ani"}
        await append(client, "talk", said, REPLY)
        await extracted(client, "talk")

        [line] = lines_of(chat.requests[0], "user")
        assert line["name"] == "阿妮"
        assert lines_of(chat.requests[0], "message")[0]["name"] == "ani"

    async def test_the_name_of_messages_in_a_request(self, client, chat):
        said = [
            {"role": "user", "content": "I live in Munich.", "name": "Ana"},
            {"role": "user", "content": "I live in Rome.", "name": "Ben"},
        ]
        for messages in (said, said[:1]):
            await told(client, chat, *messages)

        for request in chat.requests:
            assert [line["name"] for line in lines_of(request, "user")] == ["Ana"]

    async def test_no_name_where_none_is_known(self, client, chat):
        await told(client, chat, "I live in Munich.")

        assert lines_of(chat.requests[0], "user") == []
