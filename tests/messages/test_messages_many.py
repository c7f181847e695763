"""Sessions with more messages than one statement may have parameters."""

from httpx import AsyncClient

from tests.support.api import append, counts, execute, ok
from tests.support.tenants import Caller

MANY = 33_000

FILL = """
INSERT INTO messages (tenant_id, message_id, agent_id, user_id, session_id, role, content,
    parent_message_id, create_time, sequence_no)
SELECT $1, 'n' || n, 'default', 'ana', 's1', 'user', 'x',
    CASE n WHEN 2 THEN $2 ELSE 'n' || n - 1 END, now() + n * interval '1 microsecond', n
FROM generate_series(2, $3::bigint) AS n
"""


async def fill(client: AsyncClient, dsn: str, tenant_id: str) -> None:
    """One chain of many messages."""
    first = await append(client, "s1", "Begin.")
    await execute(dsn, FILL, tenant_id, first["messages"][0]["message_id"], MANY)
    await execute(
        dsn, "UPDATE sessions SET last_sequence_no = $2 WHERE tenant_id = $1", tenant_id, MANY
    )


async def test_a_session_of_many_messages_can_be_cleared(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await fill(client, dsn, acme.tenant_id)
    path = "/sessions/s1/messages"

    counted = ok(await client.delete(path, params={"dry_run": True}))
    cleared = ok(await client.delete(path, params={"confirm": True}))

    assert (counted["deleted"], cleared["deleted"]) == (MANY, MANY)
    assert (await counts(dsn, acme.tenant_id))["messages"] == 0


async def test_the_children_of_many_messages_move_up_together(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await fill(client, dsn, acme.tenant_id)
    leaves = [
        {"role": "user", "content": "y", "message_id": f"leaf{n}", "parent_message_id": f"n{n}"}
        for n in (2, 17, 9_000)
    ]
    await append(client, "s1", *leaves)

    gone = ok(await client.post("/sessions/s1/messages/delete", json={"oldest": 10_000}))

    assert gone["deleted"] == 10_000
    left = ok(await client.get("/sessions/s1/messages", params={"limit": 1}))["items"]
    assert [(row["message_id"], row["parent_message_id"]) for row in left] == [("n10001", None)]
    for leaf in leaves:
        row = ok(await client.get(f"/sessions/s1/messages/{leaf['message_id']}"))
        assert row["parent_message_id"] is None
