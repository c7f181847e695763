"""Searching memories by what they say, for tests in which texts stand for ids."""

from typing import Any

from httpx import AsyncClient

from tests.support.api import ok, search


async def save_all(client: AsyncClient, *said: str | dict[str, Any], **fields: Any) -> list[str]:
    """Remember texts, or messages, of Ana's in one request, near duplicates too; their ids."""
    messages = [{"content": one} if isinstance(one, str) else one for one in said]
    body = {"messages": messages, "user_id": "ana", "infer": False, "on_duplicate": "allow"}
    outcomes = ok(await client.post("/memories", json=body | fields))["results"]
    assert {one["event"] for one in outcomes} == {"ADD"}, outcomes
    return [one["memory_id"] for one in outcomes]


async def texts(client: AsyncClient, query: str, **fields: Any) -> list[str]:
    """What a search among Ana's memories finds, best first."""
    return [hit["content"] for hit in (await asked(client, query, **fields))["results"]]


async def hits(client: AsyncClient, query: str, **fields: Any) -> dict[str, dict[str, Any]]:
    """The hits of a search, explained, by text, best first."""
    answer = await asked(client, query, **({"explain": True} | fields))
    return {hit["content"]: hit for hit in answer["results"]}


async def boosts(client: AsyncClient, query: str, **fields: Any) -> dict[str, dict[str, float]]:
    """What each signal added to each hit."""
    found = await hits(client, query, **fields)
    return {content: hit["explain"]["boosts"] for content, hit in found.items()}


async def asked(client: AsyncClient, query: str, **fields: Any) -> dict[str, Any]:
    """The answer to a search among Ana's memories, unless `fields` name somebody else."""
    whose = {} if {"project_id", "session_id"} & fields.keys() else {"user_id": "ana"}
    return await search(client, query, **(whose | fields))
