"""A correction comes before other memories, however small the budget is."""

from typing import Any

import pytest
from httpx import AsyncClient

from tests.support.api import append, ok, problem, save

MISTAKE = {"memory_type": "correction", "source_error": "said Annie"}
CORRECTION = "Her first name is Ana and not Annie."
LONG = "Ana has changed her mind about names: " + "call her what you like. " * 20


async def context(client: AsyncClient, **body: Any) -> dict[str, Any]:
    asked = {"query": "Which seat does she want on the train?"} | body
    return ok(await client.post("/sessions/s1/context", json=asked))


@pytest.fixture
async def talk(client: AsyncClient) -> AsyncClient:
    """A session in which much is remembered, and much was said before in another."""
    for number in range(12):
        said = f"On train {number} I had a seat near the window, and the seat was good."
        await append(client, "before", said, user_id="ana")
    await append(client, "s1", "Book me a train.", user_id="ana")
    for number in range(8):
        await save(client, f"Ana wants a seat on the train to city number {number}.")
    return client


def shown(answer: dict[str, Any]) -> list[str]:
    return [one["memory_type"] for one in answer["used"]]


@pytest.mark.parametrize("excerpts", [True, False])
@pytest.mark.parametrize("budget", [100, 101, 130, 300])
async def test_correction_is_shown_before_other_memories(
    talk: AsyncClient, budget: int, excerpts: bool
) -> None:
    await save(talk, CORRECTION, **MISTAKE)

    answer = await context(talk, max_memory_tokens=budget, include={"excerpts": excerpts})

    assert shown(answer)[0] == "correction"
    assert f"- [correction] {CORRECTION} (avoid: said Annie)" in answer["prompt"]
    assert answer["memory_tokens"] <= budget


async def test_a_smaller_budget_is_refused(talk: AsyncClient) -> None:
    response = await talk.post("/sessions/s1/context", json={"max_memory_tokens": 99})

    problem(response, 422, "invalid_request")


async def test_one_that_does_not_fit_leaves_its_place_to_one_that_does(talk: AsyncClient) -> None:
    await save(talk, LONG, **MISTAKE)
    await save(talk, CORRECTION, **MISTAKE)

    answer = await context(talk, max_memory_tokens=100)

    assert CORRECTION in answer["prompt"]
    assert LONG not in answer["prompt"]
    assert answer["memory_tokens"] <= 100


async def test_excerpts_get_what_it_leaves(talk: AsyncClient) -> None:
    await save(talk, CORRECTION, **MISTAKE)

    answer = await context(talk, max_memory_tokens=200)

    names = {one["name"]: one["shown"] for one in answer["parts"]}
    assert names["corrections"] == 1
    assert names["excerpts"] >= 1
    assert answer["memory_tokens"] <= 200
