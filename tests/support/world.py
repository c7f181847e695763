"""One tenant with a row of every kind, and a way to see whether any of them changed."""

import json
from dataclasses import dataclass
from typing import Any

import asyncpg
from httpx import AsyncClient

from app.database.registry import TABLES
from app.database.roles import OWNER
from app.runtime import Runtime
from tests.support.tenants import Caller, make_key

# Written behind the answer, whoever asks: when a key was used, how often a memory was found.
WRITTEN_ASIDE = {"last_used_at", "use_count"}


@dataclass(frozen=True)
class World:
    """`ids` are of rows that belong to the user ana and the agent helper."""

    owner: Caller
    ids: dict[str, str]


async def send(client: AsyncClient, method: str, path: str, **rest: Any) -> dict[str, Any]:
    response = await client.request(method, path, **rest)
    assert response.is_success, response.text
    return response.json()


async def remember(client: AsyncClient, text: str, **place: Any) -> str:
    body = {"messages": text, "infer": False, "on_duplicate": "allow"} | place
    answer = await send(client, "POST", "/memories", json=body)
    return answer["results"][0]["memory_id"]


async def build_world(runtime: Runtime, client: AsyncClient, owner: Caller) -> World:
    """Rows of every kind in the tenant of `client`, an admin: ana's, and some of ben's."""
    for agent, user in (("helper", "ana"), ("rival", "ben")):
        await send(client, "POST", "/agents", json={"agent_id": agent, "agent_name": agent.title()})
        await send(client, "POST", "/users", json={"user_id": user, "agent_id": agent})
    await send(
        client,
        "POST",
        "/projects",
        json={"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"},
    )
    await send(
        client,
        "POST",
        "/sessions",
        json={"session_id": "talk", "user_id": "ana", "project_id": "apollo"},
    )
    await send(
        client,
        "POST",
        "/sessions/talk/messages",
        json={
            "messages": [
                {"message_id": "said-1", "role": "user", "content": "I moved to Munich."},
                {"message_id": "said-2", "role": "assistant", "content": "How is it there?"},
            ]
        },
    )
    memory_id = await remember(client, "She moved to Munich last week.", user_id="ana")
    session_memory_id = await remember(
        client, "Her train was late today.", user_id="ana", session_id="talk", scope="session"
    )
    project_memory_id = await remember(
        client, "Apollo ships in March.", user_id="ana", project_id="apollo", scope="project"
    )
    agent_memory_id = await remember(
        client, "Refunds take five working days.", agent_id="helper", scope="agent"
    )
    await remember(client, "Ben collects old maps.", user_id="ben")
    key = await make_key(runtime, owner.tenant_id, "read")
    return World(
        owner,
        {
            "tenant_id": owner.tenant_id,
            "key_id": key.key_id,
            "agent_id": "helper",
            "user_id": "ana",
            "project_id": "apollo",
            "session_id": "talk",
            "message_id": "said-1",
            "memory_id": memory_id,
            "session_memory_id": session_memory_id,
            "project_memory_id": project_memory_id,
            "agent_memory_id": agent_memory_id,
        },
    )


async def rows_of(dsn: str, tenant_id: str) -> set[tuple[str, str]]:
    """Every row of a tenant: its table and its content, as the owner of the tables sees it."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"SET ROLE {OWNER}")
        found = set()
        for table in TABLES:
            name = table.__tablename__
            for row in await connection.fetch(
                f"SELECT to_jsonb(t) AS row FROM {name} t WHERE tenant_id = $1", tenant_id
            ):
                content = json.loads(row["row"])
                for column in WRITTEN_ASIDE:
                    content.pop(column, None)
                found.add((name, json.dumps(content, sort_keys=True)))
        return found
    finally:
        await connection.close()
