"""What searching messages costs PostgreSQL: the plan, and how often it is asked."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from fastapi import FastAPI

from app.conversation.messages.search_sql import (
    MessagePlan,
    features_statement,
    hits_statement,
    pieces_statement,
)
from app.identity.tenants.access import Access
from app.language.ranking.query import parse_query
from app.language.ranking.records import read_records
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime
from app.settings import Settings
from tests.support.api import append, execute
from tests.support.plans import PEOPLE, Crowd, filled_crowd, literal, nodes, plan_of
from tests.support.recall import recalled
from tests.support.service import client_of, tapped
from tests.support.tenants import Caller

MODEL = "wordllama/l2_supercat:256"
MOMENT = datetime(2020, 1, 1, tzinfo=UTC)

CROWD = f"""{PEOPLE}, talks AS (
    INSERT INTO sessions (tenant_id, session_id, user_id, agent_id)
    SELECT $1, user_id || '-talk' || n, user_id, agent_id FROM crowd, generate_series(1, 2) AS n
    RETURNING session_id, user_id, agent_id
)
INSERT INTO messages (tenant_id, message_id, session_id, user_id, agent_id, role, content,
    sequence_no, terms, term_count, analyser, embedding, embedding_model)
SELECT $1, session_id || '/' || n, session_id, user_id, agent_id, 'user', 'x', n,
    '{{1:1}}/1000000000', 1, 1,
    array_fill(0.0625::float4, ARRAY[256])::vector, 'wordllama/l2_supercat:256'
FROM talks, generate_series(1, 20) AS n
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["analysed", "new"])
async def crowded(
    postgres: EmbeddedPostgres, settings: Settings, request: pytest.FixtureRequest
) -> AsyncIterator[Crowd]:
    """A tenant with 8,000 messages in 400 sessions of 200 users of 20 agents."""
    tables = ("messages", "sessions") if request.param == "analysed" else ()
    name = f"messages_search_plan_{request.param}"
    async with filled_crowd(postgres, settings, name, tables, CROWD) as crowd:
        yield crowd


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def forked(crowded: Crowd) -> Crowd:
    """The crowd, with two forks of a session of its last user."""
    await execute(crowded.dsn, FORKS, crowded.tenant_id)
    return crowded


FORKS = """
WITH fork AS (
    INSERT INTO sessions (tenant_id, session_id, user_id, agent_id)
    SELECT $1, 'fork' || n, 'agent20-user10', 'agent20' FROM generate_series(1, 2) AS n
    RETURNING session_id
)
INSERT INTO messages (tenant_id, message_id, session_id, user_id, agent_id, role, content,
    sequence_no, terms, term_count, analyser, embedding, embedding_model, copied_from)
SELECT $1, fork.session_id || '/' || sequence_no, fork.session_id, user_id, agent_id, role, content,
    sequence_no, terms, term_count, analyser, embedding, embedding_model, message_id
FROM messages, fork
WHERE tenant_id = $1 AND messages.session_id = 'agent20-user10-talk1'
"""


IDS: dict[str, tuple[dict[str, str], int]] = {
    "session": ({"session_id": "agent1-user1-talk1"}, 20),
    "user": ({"user_id": "agent1-user1"}, 40),
    "agent": ({"agent_id": "agent1"}, 400),
    "session and user": ({"session_id": "agent1-user1-talk1", "user_id": "agent1-user1"}, 20),
    "user and agent": ({"user_id": "agent1-user1", "agent_id": "agent1"}, 40),
}


def plan_for(caller: Crowd, access: dict[str, str], **fields: Any) -> MessagePlan:
    named: dict[str, Any] = dict.fromkeys(("session_id", "user_id", "agent_id")) | fields
    return MessagePlan(
        access=Access(caller.tenant_id, **access),
        vectors={MODEL: np.ones(256, np.float32) / 16, "test/small:16": np.ones(16) / 4},
        asked=parse_query("Which piano does Melanie play on 8 May?", MOMENT),
        roles=["user"],
        **named,
    )


def reads_of(found_plan: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Where a plan reads messages, and where it asks for others that they are copies of."""
    reads = [node for node in nodes(found_plan) if node.get("Relation Name") == "messages"]
    copies = [node for node in reads if node["Alias"].startswith("other")]
    return [node for node in reads if node not in copies], copies


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize(
    "access",
    [{}, {"user_id": "agent1-user1"}, {"agent_id": "agent1"}],
    ids=["all", "user", "agent"],
)
@pytest.mark.parametrize(
    "narrowed",
    [
        {},
        {"since": MOMENT, "until": MOMENT},
        {"newest": datetime(2100, 1, 1, tzinfo=UTC)},
        {"sessions": ["agent1-user1-talk1"], "remembered": True},
    ],
    ids=["plain", "times", "page", "excerpts"],
)
async def test_a_search_reads_whose_messages_it_is_about_and_nothing_else(
    crowded: Crowd, name: str, access: dict[str, str], narrowed: dict[str, Any]
) -> None:
    ids, rows = IDS[name]
    plan = plan_for(crowded, access, **ids, **narrowed)
    text, values, _ = features_statement(plan)

    reads, copies = reads_of(await plan_of(crowded.dsn, crowded.tenant_id, text, values))

    # Whether there are too many is asked first, and nothing more about it when there are not.
    crowd, edge, read_records = reads
    assert edge["Actual Loops"] == 0
    # Nor is anything asked of copies where there are none.
    assert [(one["Node Type"] != "Seq Scan", one["Actual Loops"]) for one in copies] == [
        (True, 0)
    ] * 4
    for one in (crowd, read_records):
        assert one["Node Type"] != "Seq Scan"
        assert one["Actual Rows"] == (min(rows, 40) if "user_id" in access else rows)
        assert one.get("Rows Removed by Filter", 0) <= 400


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("narrowed", [{}, {"since": MOMENT}], ids=["plain", "times"])
async def test_of_too_many_the_newest_are_read_and_no_others(
    crowded: Crowd, name: str, narrowed: dict[str, Any]
) -> None:
    ids, _ = IDS[name]
    plan = plan_for(crowded, {}, **ids, **narrowed, most=10)
    text, values, _ = features_statement(plan)

    reads, copies = reads_of(await plan_of(crowded.dsn, crowded.tenant_id, text, values))

    assert all(node["Node Type"] != "Seq Scan" for node in (*reads, *copies))
    assert reads[-1]["Actual Rows"] == 10


@pytest.mark.parametrize(
    ("narrowed", "rows"),
    [
        ({}, 40),
        ({"beside": "fork1"}, 60),
        ({"session_id": "fork1"}, 20),
        ({"sessions": ["fork1", "fork2"]}, 60),
    ],
    ids=["plain", "beside", "session", "sessions"],
)
async def test_what_a_copy_is_of_is_read_by_its_id(
    forked: Crowd, narrowed: dict[str, Any], rows: int
) -> None:
    plan = plan_for(forked, {}, user_id="agent20-user10", **narrowed)
    text, values, _ = features_statement(plan)

    reads, copies = reads_of(await plan_of(forked.dsn, forked.tenant_id, text, values))

    assert reads[-1]["Actual Rows"] == rows
    assert sum(node["Actual Loops"] for node in copies) > 0
    for node in copies:
        assert node["Node Type"] in ("Index Scan", "Index Only Scan", "Bitmap Heap Scan"), node
        assert "copied_from" in node.get("Index Cond", node.get("Recheck Cond")), node
        assert node["Actual Rows"] <= 1, node
        assert node.get("Rows Removed by Filter", 0) <= 2, node


async def test_each_record_stands_where_its_id_does(
    runtime: Runtime, app: FastAPI, acme: Caller, dsn: str
) -> None:
    """Whatever is missing of a row, and wherever changes have put it."""
    async with client_of(app, acme.key) as client:
        await append(client, "s1", *(f"Locker {n}: {'red ' * n}door." for n in range(40)))
    gone = ("terms = NULL, term_count = NULL", "embedding = NULL", "said_at = NULL")
    for place, change in enumerate((*gone, "metadata = '{}'")):
        await execute(
            dsn,
            f"UPDATE messages SET {change} WHERE tenant_id = $1 AND sequence_no % 7 = $2",
            acme.tenant_id,
            place,
        )
    text, values, columns = features_statement(plan_for(acme, {}, session_id="s1"))

    [row] = await runtime.database.fetch(acme.tenant_id, text, *values)

    records = read_records(row["records"], columns)
    told = zip(
        row["ids"],
        records["length"].tolist(),
        records["created"].tolist(),
        np.isnan(records["similarity"]).tolist(),
        strict=True,
    )
    stored = await execute(
        dsn,
        "SELECT message_id, coalesce(term_count, 0) AS length, "
        "CAST(extract(epoch FROM create_time - '2000-01-01Z') * 1000000 AS bigint) AS created, "
        "embedding IS NULL AS bare FROM messages WHERE tenant_id = $1 AND terms IS NOT NULL",
        acme.tenant_id,
    )
    assert len(stored) >= 30
    assert sorted(told) == sorted(tuple(one) for one in stored)


async def test_hits_are_fetched_by_their_ids(crowded: Crowd) -> None:
    plan = plan_for(crowded, {}, user_id="agent1-user1")
    ids = [f"agent1-user1-talk1/{number}" for number in range(1, 11)]

    text, values = hits_statement(plan, [*ids, "agent2-user1-talk1/1", "nowhere"])

    found_plan = nodes(await plan_of(crowded.dsn, crowded.tenant_id, text, values))
    reads = [node for node in found_plan if node.get("Relation Name") == "messages"]
    assert [node["Node Type"] != "Seq Scan" for node in reads] == [True] * len(reads)
    assert found_plan[0]["Actual Rows"] == 10


@pytest.mark.parametrize(
    "access",
    [{}, {"user_id": "agent1-user1"}, {"agent_id": "agent1"}],
    ids=["all", "user", "agent"],
)
@pytest.mark.parametrize(
    "narrowed", [{}, {"since": MOMENT, "sessions": ["agent1-user1-talk1"]}], ids=["plain", "more"]
)
async def test_pieces_are_fetched_by_the_ids_of_their_messages(
    crowded: Crowd, access: dict[str, str], narrowed: dict[str, Any]
) -> None:
    ids = {"user_id": "agent1-user1", "agent_id": "agent1"}
    plan = plan_for(crowded, access, **ids, **narrowed, remembered=True)
    wanted = [f"agent1-user1-talk1/{number}" for number in range(12, 21)]

    text, values, _ = pieces_statement(plan, [*wanted, "agent2-user1-talk1/1", "nowhere"])

    found = nodes(await plan_of(crowded.dsn, crowded.tenant_id, text, values))
    assert found[0]["Actual Rows"] == 9
    reads = [node for node in found if node.get("Relation Name")]
    [chosen, *_] = [node for node in found if "messages_pkey" in str(node.get("Index Name"))]
    assert "ANY" in chosen["Index Cond"]
    assert len(reads) == 3
    for node in reads:
        assert node["Node Type"] != "Seq Scan", node
        assert node["Actual Rows"] * node["Actual Loops"] <= 10, node
        assert node.get("Rows Removed by Filter", 0) <= 1, node


async def test_a_search_asks_the_database_four_times(acme: Caller, dsn: str) -> None:
    async with tapped(dsn, acme.key) as (wire, client):
        await append(client, "s1", "She drinks green tea.")
        # Statements are prepared once per connection.
        for _ in range(3):
            await recalled(client, "green tea", user_id="ana")

        before = wire.round_trips
        for _ in range(10):
            assert len(await recalled(client, "green tea", user_id="ana")) == 1

        # Who is calling, what is known of every message, of the pieces of the best, and what is
        # shown of them.
        assert wire.round_trips - before == 40


async def test_an_append_asks_no_oftener_for_being_searchable(acme: Caller, dsn: str) -> None:
    async with tapped(dsn, acme.key) as (wire, client):
        for number in range(3):
            await append(client, "s1", f"Turn {number}.")

        before = wire.round_trips
        await append(client, "s1", "One more.")

        assert wire.round_trips - before <= 11


def test_values_can_stand_in_a_plan() -> None:
    plan = plan_for(Caller("tnt_x", "k", "key_x"), {}, session_id="s1")

    _, values, _ = features_statement(plan)

    assert all(literal(value) for value in values)
