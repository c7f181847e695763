"""What a context costs PostgreSQL: how often it is asked, and what it reads of a long session."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from app.platform.embedded.server import EmbeddedPostgres
from app.prompting.context.context_sql import CONTEXT
from app.settings import Settings
from tests.support.api import append, ok, save
from tests.support.plans import Crowd, filled_crowd, nodes, plan_of
from tests.support.service import tapped
from tests.support.tenants import Caller

LENGTHS = (50, 1_000, 10_000)

CROWD = """
WITH home AS (
    INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'agent', 'A')
    RETURNING agent_id
), crowd AS (
    INSERT INTO users (tenant_id, user_id, agent_id)
    SELECT $1, 'user' || n, agent_id FROM home, generate_series(1, 50) AS n
    RETURNING user_id, agent_id
), talks AS (
    INSERT INTO sessions (tenant_id, session_id, user_id, agent_id, last_sequence_no,
        window_messages, window_tokens, window_seq, last_user_seq)
    SELECT $1, 'talk' || length, 'user1', 'agent', length, length, length * 20, length, length
    FROM unnest(CAST($2 AS int8[])) AS length RETURNING session_id, last_sequence_no
), others AS (
    INSERT INTO sessions (tenant_id, session_id, user_id, agent_id, last_sequence_no)
    SELECT $1, user_id || '-talk' || n, user_id, agent_id, 20
    FROM crowd, generate_series(1, 4) AS n RETURNING session_id, last_sequence_no
)
INSERT INTO messages (tenant_id, message_id, session_id, user_id, agent_id, role, content,
    sequence_no, token_count)
SELECT $1, session_id || '/' || n, session_id, 'user1', 'agent',
    CASE WHEN n % 2 = 0 THEN 'user' ELSE 'assistant' END, 'word ' || n, n, 20
FROM (SELECT * FROM talks UNION ALL SELECT * FROM others) AS session,
    generate_series(1, last_sequence_no) AS n
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["analysed", "new"])
async def crowded(
    postgres: EmbeddedPostgres, settings: Settings, request: pytest.FixtureRequest
) -> AsyncIterator[Crowd]:
    """A tenant with three sessions of the lengths above, and 200 short ones."""
    tables = ("agents", "users", "sessions", "messages") if request.param == "analysed" else ()
    name = f"context_plan_{request.param}"
    async with filled_crowd(postgres, settings, name, tables, CROWD, list(LENGTHS)) as crowd:
        yield crowd


@pytest.mark.parametrize("access", [(None, None), ("agent", None), (None, "user1")])
@pytest.mark.parametrize("length", LENGTHS)
async def test_a_long_session_is_read_no_further_than_the_budget_reaches(
    crowded: Crowd, length: int, access: tuple[str | None, str | None]
) -> None:
    values = [f"talk{length}", *access, None, 400, 1]

    found = nodes(await plan_of(crowded.dsn, crowded.tenant_id, CONTEXT, values))

    assert found[0]["Actual Rows"] == 1
    reads = [node for node in found if node.get("Relation Name") in {"messages", "sessions"}]
    # 400 tokens are 101 messages of the least length; half as many instructions are looked for.
    for node in reads:
        rows = node["Actual Rows"] * node["Actual Loops"]
        left = node.get("Rows Removed by Filter", 0)
        assert rows <= 102, node
        assert left <= 110, node
        assert node["Node Type"] != "Seq Scan", node


async def test_a_context_sends_a_bounded_number_of_statements(acme: Caller, dsn: str) -> None:
    async with tapped(dsn, acme.key) as (wire, client):
        await append(client, "s1", "What do I drink?")
        await save(client, "She drinks green tea.")
        await save(client, "No nuts.", memory_type="correction")

        async def ask(body: dict[str, Any]) -> None:
            for _ in range(10):
                answer = ok(await client.post("/sessions/s1/context", json=body))
                assert len(answer["used"]) == 2

        empty = [{"role": "assistant", "content": "Hello."}]
        for body in ({}, {"query": "tea"}, {"messages": empty}):
            # Who is calling, the session, what is known of every memory, and the best of them;
            # without a question the surest, and the surest corrections. What is known of every
            # message comes with the memories.
            assert await wire.settled(partial(ask, body)) == 10 * 4


async def test_excerpts_cost_no_statement_of_their_own(acme: Caller, dsn: str) -> None:
    async with tapped(dsn, acme.key) as (wire, client):
        await append(client, "s0", "I drink green tea.", "I drank coffee before. " * 20)
        await append(client, "s1", "What do I drink?")
        await save(client, "She drinks green tea.")

        async def trips(**include: bool) -> tuple[int, int]:
            shown: set[int] = set()

            async def ask() -> None:
                for _ in range(10):
                    body = {"include": include}
                    answer = ok(await client.post("/sessions/s1/context", json=body))
                    shown.add(len(answer["used_excerpts"]))

            spent = await wire.settled(ask)
            [excerpts] = shown
            return spent // 10, excerpts

        assert await trips(excerpts=False) == (4, 0)
        assert await trips() == (4, 2)
        assert await trips(memories=False, corrections=False) == (4, 2)
        nothing = await trips(memories=False, corrections=False, excerpts=False)
        assert nothing == (2, 0)
