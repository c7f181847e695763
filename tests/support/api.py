"""What tests of routes say again and again, in the words of a client."""

from typing import Any

import asyncpg
from httpx import AsyncClient, Response

from app.governance.tables import TABLES
from tests.support.owner_connections import owner_connection

MOST_PAGES = 1_000


def ok(response: Response, status: int = 200) -> Any:
    """The body of an answer that must be a success."""
    assert response.status_code == status, response.text
    return response.json() if response.content else None


def problem(response: Response, status: int, code: str) -> dict[str, Any]:
    """The problem document of an answer that must be this failure."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["code"]) == (status, code), body
    assert body["request_id"]
    return body


def fields(body: dict[str, Any]) -> list[str]:
    """The places a problem document complains about, as dotted paths."""
    return [".".join(error["location"]) for error in body["errors"]]


async def every_page(client: AsyncClient, path: str, **params: Any) -> list[dict[str, Any]]:
    """All rows of a list, page by page."""
    rows: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        page = ok(await client.get(path, params=params | cursor))
        rows += page["items"]
        if page["next_cursor"] is None:
            return rows
        cursor = {"cursor": page["next_cursor"]}
    raise AssertionError("the pages never end")


async def save(client: AsyncClient, text: Any, **fields: Any) -> dict[str, Any]:
    """Remember one statement of Ana's as it stands; the outcome."""
    body = {"messages": text, "user_id": "ana", "infer": False} | fields
    response = await client.post("/memories", json=body)
    assert response.status_code in {200, 201}, response.text
    return response.json()["results"][0]


async def search(client: AsyncClient, query: str = "green tea", **fields: Any) -> dict[str, Any]:
    """The answer to a search among Ana's memories, unless `fields` say otherwise."""
    body = {"query": query} | (fields or {"user_id": "ana"})
    return ok(await client.post("/memories/search", json=body))


async def found(client: AsyncClient, query: str = "green tea", **fields: Any) -> list[str]:
    """Ids of the hits of a search, best first."""
    return [hit["memory_id"] for hit in (await search(client, query, **fields))["results"]]


async def listed(client: AsyncClient, **params: Any) -> list[str]:
    """Ids of the memories a list shows."""
    return [row["memory_id"] for row in await every_page(client, "/memories", **params)]


async def append(client: AsyncClient, session_id: str, *messages: Any, **fields: Any) -> Any:
    """Append to a session of Ana's; texts are messages of the user."""
    batch = [{"role": "user", "content": one} if isinstance(one, str) else one for one in messages]
    body = {"user_id": "ana", "messages": batch} | fields
    answer = await client.post(f"/sessions/{session_id}/messages", json=body)
    # 200 where nothing was new.
    return ok(answer, 200 if answer.status_code == 200 else 201)


async def execute(dsn: str, statement: str, *values: Any) -> list[asyncpg.Record]:
    """Rows of a statement that no route offers, as the owner of the tables."""
    async with owner_connection(dsn) as connection:
        return await connection.fetch(statement, *values)


async def dump(dsn: str, tenant_id: str) -> dict[str, list[str]]:
    """Every row of a tenant as text, by table and sorted; bytes are shown as the text they hold.

    When a key was last used is left out, and what is counted of searches and contexts: both are
    written at a time no test knows.
    """
    async with owner_connection(dsn) as connection:
        rows: dict[str, list[str]] = {}
        for table in TABLES:
            name = table.__tablename__
            columns = ", ".join(
                f"encode({column.name}, 'escape')"
                if str(column.type) == "BLOB" or "BYTEA" in str(column.type).upper()
                else f"{column.name}::text"
                for column in table.__table__.columns
                if (name, column.name) != ("api_keys", "last_used_at")
            )
            found = await connection.fetch(
                f"SELECT concat_ws(' ', {columns}) AS line FROM {name} WHERE tenant_id = $1"
                + " AND name !~ '^(search|context)'" * (name == "daily_counts")
                + " ORDER BY 1",
                tenant_id,
            )
            rows[name] = [row["line"] for row in found]
        return rows


async def counts(dsn: str, tenant_id: str) -> dict[str, int]:
    """How many rows a tenant has in each table."""
    return {name: len(rows) for name, rows in (await dump(dsn, tenant_id)).items()}


def tables_with(words: str, rows: dict[str, list[str]]) -> list[str]:
    """Tables in which a text stands somewhere."""
    return [name for name, lines in rows.items() if any(words in line for line in lines)]
