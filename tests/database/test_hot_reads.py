"""The two ways of a hot read answer requests alike."""

import pytest
from httpx import AsyncClient

from tests.support.api import append, found, ok, save, search
from tests.support.service import client_of, service
from tests.support.tenants import Caller

QUERY = "Where do the bees live?"


@pytest.fixture
async def remembered(client: AsyncClient) -> None:
    await append(client, "talk", "The bees live behind the house.", user_id="ana")
    await save(client, "Her bees live behind the house.")
    await save(client, "She drinks green tea.")


async def answers(client: AsyncClient) -> list[object]:
    hits = (await search(client, QUERY, user_id="ana"))["results"]
    context = ok(await client.post("/sessions/talk/context", json={"query": QUERY}))
    messages = ok(await client.post("/messages/search", json={"query": QUERY, "user_id": "ana"}))[
        "items"
    ]
    return [
        [(hit["memory_id"], hit["content"]) for hit in hits],
        context["messages"],
        [hit["message_id"] for hit in messages],
        await found(client, "tea", user_id="ana"),
    ]


async def test_search_and_context_answer_the_same_in_transactions(
    client: AsyncClient, acme: Caller, dsn: str, remembered: None
) -> None:
    expected = await answers(client)
    assert all(expected)

    async with service(dsn, read_in_transactions=True) as app, client_of(app, acme.key) as other:
        assert await answers(other) == expected
