"""What the tests of checkpoints say again and again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from httpx import AsyncClient
from sqlalchemy.ext.asyncio import AsyncConnection

from app.runtime import Runtime
from tests.support.api import execute, ok
from tests.support.tenants import Caller

SESSION = "/sessions/s1"
CHECKPOINTS = f"{SESSION}/checkpoints"
APPROVALS = f"{SESSION}/approvals"

WINDOW = """SELECT m.content FROM messages m JOIN sessions s USING (tenant_id, session_id)
    WHERE m.tenant_id = $1 AND m.session_id = 's1' AND m.sequence_no > s.in_context_from
        AND NOT s.set_aside @> m.sequence_no ORDER BY m.sequence_no"""


async def checkpoint(client: AsyncClient, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = ok(await client.post(CHECKPOINTS, json=body), 201)
    return made


async def restore(client: AsyncClient, checkpoint_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = ok(await client.post(f"{CHECKPOINTS}/{checkpoint_id}/restore"))
    return answer


async def window(dsn: str, caller: Caller) -> list[str]:
    """What a model would see of the session, message by message."""
    return [row["content"] for row in await execute(dsn, WINDOW, caller.tenant_id)]


async def put_state(client: AsyncClient, state: dict[str, Any]) -> None:
    ok(await client.put(f"{SESSION}/state", json=state, headers={"If-Match": "*"}))


async def age(dsn: str, caller: Caller, checkpoint_id: str, by: timedelta) -> None:
    """Move the making of a checkpoint so far into the past."""
    await execute(
        dsn,
        "UPDATE checkpoints SET create_time = now() - $3::interval "
        "WHERE tenant_id = $1 AND checkpoint_id = $2",
        caller.tenant_id,
        checkpoint_id,
        by,
    )


def asking(*call_ids: str, **metadata: Any) -> dict[str, Any]:
    """A message of the assistant with calls that wait for a human."""
    return {
        "role": "assistant",
        "tool_calls": [{"id": one, "name": "book", "arguments": {"seats": 1}} for one in call_ids],
        "metadata": {"requires_approval": True} | metadata,
    }


def answering(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "Done."}


@asynccontextmanager
async def holding(runtime: Runtime, caller: Caller) -> AsyncIterator[AsyncConnection]:
    """The session's row, locked by a connection of ours until the block ends."""
    async with runtime.database.begin(caller.tenant_id) as db:
        connection = await db.connection()
        await connection.exec_driver_sql(
            "SELECT 1 FROM sessions WHERE session_id = 's1' FOR UPDATE"
        )
        yield connection
