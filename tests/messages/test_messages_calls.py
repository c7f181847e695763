"""Results and the calls they answer: which are open, and what it costs to find out."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio
from httpx import AsyncClient

from app.conversation.messages.repository import NEAR, MessageRepository
from app.identity.tenants.access import Access
from app.platform.embedded.server import EmbeddedPostgres
from app.prompting.checkpoints.approval_repository import ApprovalRepository
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import append, execute, problem
from tests.support.databases import migrated_database, served
from tests.support.plans import generic_plans, nodes, sent_by
from tests.support.tenants import Caller, make_tenant


def calling(*call_ids: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": one} for one in call_ids]}


def answering(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "Done."}


async def said(client: AsyncClient, messages: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(messages), 100):
        await append(client, "s", *messages[start : start + 100])


async def refused(client: AsyncClient, *messages: dict[str, Any]) -> int:
    """Where in the batch the first result without an open call stands."""
    response = await client.post("/sessions/s/messages", json={"messages": messages})
    body = problem(response, 422, "unknown_tool_call")
    return int(body["errors"][0]["location"][2])


class TestOpenCalls:
    @pytest.mark.parametrize("later", [NEAR - 1, NEAR, NEAR + 1])
    async def test_one_can_be_answered_once_however_many_were_made_since(
        self, client: AsyncClient, later: int
    ) -> None:
        await said(client, [calling("first")])
        await said(client, [calling(f"c{number}") for number in range(later)])

        await append(client, "s", answering("first"))

        assert await refused(client, answering("first")) == 0
        await append(client, "s", answering("c0"), answering(f"c{later - 1}"))

    @pytest.mark.parametrize("turns", [NEAR - 1, NEAR, NEAR + 1])
    async def test_an_id_that_every_turn_uses_again_is_open_as_often_as_it_waits(
        self, client: AsyncClient, turns: int
    ) -> None:
        """Two wait: one of long ago, and that of the last turn."""
        await said(client, [calling("call_0")])
        await said(client, [calling("call_0"), answering("call_0")] * turns)
        await said(client, [calling("call_0")])

        assert await refused(client, *[answering("call_0")] * 3) == 2
        await append(client, "s", *[answering("call_0")] * 2)
        await refused(client, answering("call_0"))

    async def test_those_of_the_batch_are_answered_before_those_that_are_stored(
        self, client: AsyncClient
    ) -> None:
        await said(client, [calling("a")])
        batch = [answering("a"), calling("a", "b"), answering("b"), answering("a")]

        assert await refused(client, *batch, answering("a")) == 4
        assert await refused(client, answering("b"), *batch) == 0
        await append(client, "s", *batch)
        await refused(client, answering("a"))


CROWD = """
WITH talk AS (
    INSERT INTO sessions (tenant_id, session_id, user_id, agent_id, last_sequence_no, window_seq)
    VALUES ($1, $2, 'ana', 'default', $3::int8, $3::int8)
), waits AS (
    INSERT INTO approvals (tenant_id, approval_id, session_id, tool_call_id, sequence_no, call,
        expires_at)
    SELECT $1, $2 || n, $2, $4 || n, n, '{}', now() + interval '1 day'
    FROM generate_series(2, $3::int8, 200) AS n
)
INSERT INTO messages (tenant_id, message_id, session_id, user_id, agent_id, role, content,
    sequence_no, create_time, tool_calls, tool_call_id)
SELECT $1, $2 || n, $2, 'ana', 'default', (ARRAY['user', 'assistant', 'tool', 'assistant'])[1 + k],
    repeat('The blue notebook lies there. ', 5), n, now() + n * interval '1 second',
    CASE WHEN k = 1 THEN jsonb_build_array(jsonb_build_object('id', $5 || coalesce(own, ''))) END,
    CASE WHEN k = 2 THEN $5 || coalesce(own, '') END
FROM generate_series(1, $3::int8 - 1) AS n, LATERAL (SELECT (n - 1) % 4 AS k) AS place,
    LATERAL (SELECT CASE WHEN $6 THEN (n - (n - 2) % 4)::text END AS own) AS id
UNION ALL
SELECT $1, $2 || $3, $2, 'ana', 'default', 'assistant', '', $3, now() + interval '1 day',
    jsonb_build_array(jsonb_build_object('id', $5 || CASE WHEN $6 THEN 'last' ELSE '' END)), NULL
"""
LENGTH = 10_000


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def alone(postgres: EmbeddedPostgres, settings: Settings) -> AsyncIterator[Runtime]:
    """A runtime on a database of its own: plans follow what tables hold, and others' tests fill
    the shared one with whatever they like.
    """
    async with open_runtime(settings, served(await migrated_database(postgres, "calls"))) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy(postgres: EmbeddedPostgres, alone: Runtime) -> Caller:
    """Sessions of 10,000 messages, a quarter of them calls, with ids of their own or one id."""
    dsn = postgres.dsn.replace("/kemem?", "/calls?")
    tenant = await make_tenant(alone)
    for statement in (
        "INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'default', 'A')",
        "INSERT INTO users (tenant_id, user_id, agent_id) VALUES ($1, 'ana', 'default')",
    ):
        await execute(dsn, statement, tenant.tenant_id)
    for name, own in (("own", True), ("same", False)):
        await execute(dsn, CROWD, tenant.tenant_id, name, LENGTH, "c", "c", own)
    await execute(dsn, "ANALYZE messages, approvals")
    return tenant


def looked_at(plan: dict[str, Any]) -> tuple[int, set[str]]:
    """How many messages a plan reads, and by which indexes."""
    read = [node for node in nodes(plan) if node.get("Relation Name") == "messages"]
    indexes = {one["Index Name"] for node in read for one in nodes(node) if "Index Name" in one}
    assert all("Index" in node["Node Type"] or node.get("Plans") for node in read), read
    rows = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in read
    )
    return rows, indexes


@pytest.mark.parametrize(
    ("name", "call_id", "waiting", "most"),
    [
        ("own", "clast", 1, NEAR + 1),
        ("same", "c", 1, 2 * NEAR),
        # All calls are looked through once, and no other message.
        ("own", "nobody", 0, NEAR + LENGTH // 4 + 1),
    ],
)
async def test_a_result_finds_its_call_in_a_long_session_as_in_a_short_one(
    busy: Caller, alone: Runtime, name: str, call_id: str, waiting: int, most: int
) -> None:
    async with alone.database.begin(busy.tenant_id) as db:
        messages = MessageRepository(db, Access(busy.tenant_id), name)
        with sent_by((await db.connection()).sync_connection) as sent:
            found = await messages.open_calls([call_id])
        plans = [looked_at(plan) for plan in await generic_plans(db, sent)]

    assert found == +Counter({call_id: waiting})
    assert sum(rows for rows, _ in plans) <= most
    assert set.union(*(used for _, used in plans)) <= {"messages_idx_calls", "messages_idx_results"}


async def test_whether_a_call_was_answered_is_found_by_its_id(busy: Caller, alone: Runtime) -> None:
    """50 wait, of which 49 have their result: with every checkpoint all of them are looked at."""
    async with alone.database.begin(busy.tenant_id) as db:
        approvals = ApprovalRepository(db, Access(busy.tenant_id), "own")
        with sent_by((await db.connection()).sync_connection) as sent:
            await approvals.waiting()
            await approvals.get("c2")
            await approvals.list_approvals(status="pending", start=None, limit=10)
        plans = [looked_at(plan) for plan in await generic_plans(db, sent)]

    assert len(plans) == 3
    for rows, used in plans:
        assert rows <= 2 * LENGTH // 200
        assert used == {"messages_idx_results"}
