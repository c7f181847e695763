"""Searching what was said, in the words of a client."""

from typing import Any

from httpx import AsyncClient

from tests.support.api import ok

MOST_PAGES = 100


async def recall(client: AsyncClient, query: str, **fields: Any) -> dict[str, Any]:
    """The answer to a search among what was said with Ana, unless `fields` say otherwise."""
    body = {"query": query} | (fields or {"user_id": "ana"})
    return ok(await client.post("/messages/search", json=body))


async def recalled(client: AsyncClient, query: str, **fields: Any) -> list[str]:
    """Texts of the hits of a search, best first."""
    return [hit["content"] for hit in (await recall(client, query, **fields))["items"]]


async def recalled_pages(
    client: AsyncClient, query: str, *, limit: int, **fields: Any
) -> list[list[str]]:
    """Ids of all hits, page by page."""
    pages: list[list[str]] = []
    cursor: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        answer = await recall(client, query, limit=limit, **(fields | cursor))
        pages.append([hit["message_id"] for hit in answer["items"]])
        if answer["next_cursor"] is None:
            return pages
        cursor = {"cursor": answer["next_cursor"]}
    raise AssertionError("the pages never end")
