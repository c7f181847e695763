"""Whose instructions stand first in a context: the agent's, the request's, or both."""

from typing import Any

import pytest
from httpx import AsyncClient

from app.conversation.messages.schemas import CONTENT_LENGTH
from tests.support.api import append, execute, ok, problem
from tests.support.rows import for_each

OWN = "You are the assistant of {{ company }}."


@pytest.fixture
async def talk(client: AsyncClient) -> AsyncClient:
    """A session with an agent that has instructions."""
    await append(client, "s1", "Hello.")
    await instruct(client, OWN)
    return client


async def instruct(client: AsyncClient, text: Any) -> None:
    agent_id = ok(await client.get("/sessions/s1"))["agent_id"]
    body = {"config": {"system_prompt": text}}
    ok(await client.patch(f"/agents/{agent_id}", json=body))


async def prompt(client: AsyncClient, **body: Any) -> str:
    said = body | {"context": {"company": "Acme"}}
    return ok(await client.post("/sessions/s1/context", json=said))["prompt"]


@for_each(
    ("body", "expected"),
    [
        ({}, "You are the assistant of Acme."),
        ({"system_prompt": None}, "You are the assistant of Acme."),
        ({"system_prompt": ""}, ""),
        ({"system_prompt": "Help {{ company }}."}, "Help Acme."),
        ({"system_prompt": "Help.", "system_prompt_mode": "replace"}, "Help."),
        ({"system_prompt": "Be brief at {{ company }}.", "system_prompt_mode": "extend"},
         "You are the assistant of Acme.\n\nBe brief at Acme."),
        ({"system_prompt": "", "system_prompt_mode": "extend"}, "You are the assistant of Acme."),
        ({"system_prompt_mode": "extend"}, "You are the assistant of Acme."),
    ],
)  # fmt: skip
async def test_the_request_replaces_or_extends_the_agents(
    talk: AsyncClient, body: dict[str, Any], expected: str
) -> None:
    assert await prompt(talk, **body) == expected


async def test_they_are_counted_like_those_of_a_request(talk: AsyncClient) -> None:
    answer = ok(await talk.post("/sessions/s1/context", json={"context": {"company": "Acme"}}))

    [part] = [one for one in answer["parts"] if one["name"] == "instructions"]
    assert (part["shown"], part["tokens"] > 0) == (1, True)
    assert answer["messages"][0] == {"role": "system", "content": answer["prompt"]}


async def test_a_variable_of_the_agents_that_nothing_has_is_refused(talk: AsyncClient) -> None:
    response = await talk.post("/sessions/s1/context", json={})

    assert problem(response, 422, "unknown_variable")["variables"] == ["company"]


async def test_without_instructions_the_request_extends_nothing(talk: AsyncClient) -> None:
    await instruct(talk, None)

    assert await prompt(talk, system_prompt="Help.", system_prompt_mode="extend") == "Help."


async def test_what_an_older_release_kept_under_this_name_is_no_text(
    talk: AsyncClient, dsn: str
) -> None:
    await execute(dsn, """UPDATE agents SET config = '{"system_prompt": {"text": "Hi."}}'""")

    assert await prompt(talk) == ""


@pytest.mark.parametrize(("over", "status"), [(-1, 200), (0, 200), (1, 422)])
async def test_both_together_have_the_limit_of_one(
    talk: AsyncClient, over: int, status: int
) -> None:
    await instruct(talk, "Be kind.")
    length = CONTENT_LENGTH - len("Be kind.\n\n") + over
    body = {"system_prompt": "x" * length, "system_prompt_mode": "extend", "window_tokens": 900_000}

    response = await talk.post("/sessions/s1/context", json=body)

    assert response.status_code == status
