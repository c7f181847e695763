"""The window over HTTP: what is in one, what a strategy shows of it, and what reading it costs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from httpx import AsyncClient

from app.conversation.messages.window_repository import WindowRepository, WindowRequest
from app.conversation.messages.window_sql import tail_rows
from app.conversation.sessions.policy import WindowPolicy
from app.conversation.sessions.repository import SessionRepository
from app.identity.tenants.access import Access
from app.language.llm.tokens import EstimatedTokens, message_tokens
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import append, dump, execute, fields, ok, problem
from tests.support.conversations import converse, policy, window
from tests.support.databases import migrated_database, served
from tests.support.plans import nodes, plan_of
from tests.support.tenants import Caller, make_tenant


def tokens(text: str, **parts: Any) -> int:
    return message_tokens(EstimatedTokens(), content=text, **parts)


async def trim(client: AsyncClient, name: str = "last_tokens", **body: Any) -> dict[str, Any]:
    """The session's window by a strategy; what is no option of it is the request's."""
    strategy = {key: body.pop(key) for key in ("count", "keep", "fraction") if key in body}
    asked = {"strategy": {"name": name} | strategy} | body
    return ok(await client.post("/sessions/s/window/trim", json=asked))


def numbers(answer: dict[str, Any]) -> list[int]:
    return [row["sequence_no"] for row in answer["messages"]]


async def move(dsn: str, acme: Caller, pointer: int) -> None:
    """Evict everything up to `pointer`, as compaction does; counted again at the next append."""
    await execute(
        dsn,
        "UPDATE sessions SET in_context_from = $2, window_seq = -1 "
        "WHERE tenant_id = $1 AND session_id = 's'",
        acme.tenant_id,
        pointer,
    )


class TestReading:
    async def test_a_window_tells_what_is_in_it(self, client: AsyncClient) -> None:
        await converse(client, "s", 4)

        shown = await window(client, "s")

        assert (shown["in_context_from"], shown["messages"], shown["current_request"]) == (0, 4, 3)
        assert shown["tokens"] == shown["pressure"]["tokens"]
        assert (shown["summary_ids"], shown["summary_tokens"], shown["token_scale"]) == ([], 0, 1.0)

    async def test_of_an_empty_session_it_is_empty(self, client: AsyncClient) -> None:
        await policy(client, "s")

        shown = await window(client, "s")

        assert (shown["messages"], shown["tokens"], shown["current_request"]) == (0, 0, None)
        assert (await trim(client))["messages"] == []

    async def test_nobody_elses_can_be_read(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await converse(client, "s", 2)

        problem(await stranger.get("/sessions/s/window"), 404, "session_not_found")
        problem(await stranger.post("/sessions/s/window/trim", json={}), 404, "session_not_found")

    async def test_what_an_instruction_from_before_takes_counts(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        """It is still sent."""
        rule = {"role": "system", "content": "Answer in rhymes."}
        login = {"role": "system", "content": "Ana came in.", "metadata": {"event_type": "login"}}
        await append(client, "s", rule, login, "One", {"role": "assistant", "content": "Two"}, "Go")
        await move(dsn, acme, 4)

        told = await append(client, "s", {"role": "assistant", "content": "Fine"})

        shown = await window(client, "s")
        there = tokens("Answer in rhymes.") + tokens("Go") + tokens("Fine")
        assert (shown["tokens"], shown["messages"]) == (there, 2)
        assert told["pressure"]["tokens"] == there


class TestTrimming:
    async def test_writes_nothing(self, client: AsyncClient, dsn: str, acme: Caller) -> None:
        """Trimming is for one call; others rewrote what the user sees."""
        await converse(client, "s", 30)
        before = await dump(dsn, acme.tenant_id)

        await trim(client, max_tokens=100)

        assert await dump(dsn, acme.tenant_id) == before

    async def test_shows_the_messages_as_they_are(self, client: AsyncClient) -> None:
        stored = await append(client, "s", "One", {"role": "assistant", "content": "Two"}, "Three")

        shown = await trim(client)

        assert shown["messages"] == stored["messages"]
        assert shown["tokens"] == tokens("One") + tokens("Two") + tokens("Three")
        assert (shown["max_tokens"], shown["counter"], shown["left_out"]) == (
            4000,
            "estimate/v1",
            0,
        )

    async def test_leaves_room_for_what_is_sent_besides(self, client: AsyncClient) -> None:
        await policy(client, "s", budget_tokens=1000, reserved_tokens=400)
        text = "The blue notebook lies on the shelf near the window."
        reply = {"role": "assistant", "content": "I see."}
        await append(client, "s", text, reply, usage={"input_tokens": 100_000})

        assert (await trim(client))["max_tokens"] == 400

    @pytest.mark.parametrize(
        ("name", "option", "shown"),
        [
            ("last_messages", {"count": 3}, [9, 10]),
            ("last_messages", {"count": 4}, [7, 8, 9, 10]),
            ("first_last", {"keep": 3}, [1, 9, 10]),
            ("message_fraction", {"fraction": 0.4}, [7, 8, 9, 10]),
            ("last_tokens", {}, [5, 6, 7, 8, 9, 10]),
        ],
    )
    async def test_by_each_strategy(
        self, client: AsyncClient, name: str, option: dict[str, Any], shown: list[int]
    ) -> None:
        """`first_last` takes the last three, the first of which is no request;
        it stays, for the user has spoken before it.
        """
        answered = [{"role": role, "content": "word"} for role in ("user", "assistant")] * 5
        await append(client, "s", *answered)

        told = await trim(client, name, max_tokens=6 * tokens("word"), **option)

        if name == "first_last":
            shown = [1, 8, 9, 10]
        assert numbers(told) == shown
        assert told["left_out"] == 10 - len(shown)
        assert told["starts_with_user"]

    @pytest.mark.parametrize(
        "body",
        [
            {"max_tokens": 0}, {"max_tokens": 10_000_001},
            {"strategy": {"name": "last_messages", "count": 0}},
            {"strategy": {"name": "last_messages", "count": 10_001}},
            {"strategy": {"name": "first_last", "keep": 0}},
            {"strategy": {"name": "first_last", "keep": 10_001}},
            {"strategy": {"name": "message_fraction", "fraction": 1.01}},
            {"strategy": {"name": "message_fraction", "fraction": -0.01}},
            {"strategy": {"name": ""}}, {"strategy": {"name": "x", "colour": 1}},
        ],
    )  # fmt: skip
    async def test_beyond_the_bounds_is_refused(
        self, client: AsyncClient, body: dict[str, Any]
    ) -> None:
        await converse(client, "s", 2)

        problem(await client.post("/sessions/s/window/trim", json=body), 422, "invalid_request")

    @pytest.mark.parametrize(
        "body",
        [
            {"max_tokens": 10_000_000}, {"strategy": {"name": "last_messages", "count": 1}},
            {"strategy": {"name": "last_messages", "count": 10_000}},
            {"strategy": {"name": "first_last", "keep": 1}},
            {"strategy": {"name": "first_last", "keep": 10_000}},
            {"strategy": {"name": "message_fraction", "fraction": 1}},
            {"strategy": {"name": "message_fraction", "fraction": 0}},
        ],
    )  # fmt: skip
    async def test_at_the_bounds_there_is_an_answer(
        self, client: AsyncClient, body: dict[str, Any]
    ) -> None:
        await converse(client, "s", 2)

        assert ok(await client.post("/sessions/s/window/trim", json=body))["messages"]

    async def test_below_the_least_that_must_be_shown_the_figures_are_said(
        self, client: AsyncClient
    ) -> None:
        await converse(client, "s", 2)

        problem(await client.post("/sessions/s/window/trim", json={"max_tokens": 1}), 422,
                "window_too_small")  # fmt: skip
        refused = (await client.post("/sessions/s/window/trim", json={"max_tokens": 1})).json()
        needed = refused["needed_tokens"]
        assert refused["budget_tokens"] == 1
        below = await client.post("/sessions/s/window/trim", json={"max_tokens": needed - 1})
        problem(below, 422, "window_too_small")
        at = ok(await client.post("/sessions/s/window/trim", json={"max_tokens": needed}))
        assert at["tokens"] <= needed

    async def test_an_unknown_strategy_is_refused(self, client: AsyncClient) -> None:
        await converse(client, "s", 2)
        body = {"strategy": {"name": "newest"}}

        refused = await client.post("/sessions/s/window/trim", json=body)

        assert fields(problem(refused, 422, "unknown_strategy")) == ["body.strategy.name"]


class TestTail:
    """What is read is the newest end, and what must be shown from further back."""

    async def test_a_request_far_back_is_read(self, client: AsyncClient) -> None:
        """With a hundred calls after it."""
        await append(client, "s", "Before", {"role": "assistant", "content": "Yes"}, "Do it all")
        for number in range(50):
            call = {"role": "assistant", "tool_calls": [{"id": f"c{number}"}]}
            result = {"role": "tool", "tool_call_id": f"c{number}", "content": "done " * 20}
            await append(client, "s", call, result)

        shown = await trim(client, max_tokens=100)

        assert numbers(shown) == [3, 100, 101, 102, 103]
        assert shown["fits"]

    async def test_a_call_that_waits_for_leave_is_read(self, client: AsyncClient) -> None:
        """However many messages have come since; its request and other results with it."""
        calls = {
            "role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}],
            "metadata": {"requires_approval": ["b"]},
        }  # fmt: skip
        done = {"role": "tool", "tool_call_id": "a", "content": "done"}
        await append(client, "s", "Hello", {"role": "assistant", "content": "Hi"})
        await append(client, "s", "Pay it", calls, done)
        await converse(client, "s", 100)

        shown = await trim(client, max_tokens=200)

        assert numbers(shown)[:3] == [3, 4, 5]
        assert numbers(shown)[-1] == 105
        assert shown["starts_with_user"]
        assert (shown["waiting"], shown["fits"]) == (["b"], True)

    async def test_the_first_call_is_read_with_its_results(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        """After a cut inside a turn the window begins with a call; it must not seem to wait."""
        calls = {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]}
        done = {"role": "tool", "tool_call_id": "b", "content": "done"}
        late = {"role": "tool", "tool_call_id": "a", "content": "late"}
        note = {"role": "system", "content": "Ana came.", "metadata": {"event_type": "login"}}
        await append(client, "s", "Do it all", calls, done, *[note] * 60, late)
        await move(dsn, acme, 1)
        # Some providers give every call of a session the same ids.
        call = {"role": "assistant", "tool_calls": [{"id": "a"}]}
        steps = [
            one
            for number in range(45)
            for one in (call, {"role": "tool", "tool_call_id": "a", "content": f"{number} " * 20})
        ]
        await append(client, "s", *steps)

        newest = await trim(client, max_tokens=200)
        ends = await trim(client, "first_last", keep=2, max_tokens=400)

        assert (newest["waiting"], newest["starts_with_user"]) == ([], True)
        assert numbers(newest)[0] == 1
        assert all(one > 64 for one in numbers(newest)[1:])
        assert numbers(ends) == [1, 2, 3, 64, 151, 152, 153, 154]
        assert ends["waiting"] == []

    async def test_instructions_are_read_from_anywhere_the_newest_first(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        """From before the pointer too, a quarter of the budget at most; events are not."""
        rules = [{"role": "system", "content": f"Rule {number}: be kind."} for number in range(30)]
        event = {"role": "system", "content": "Ana came in.", "metadata": {"event_type": "login"}}
        await append(client, "s", *rules, event, "One", {"role": "assistant", "content": "Two"})
        await converse(client, "s", 100)
        await move(dsn, acme, 60)

        shown = await trim(client, max_tokens=400)

        rule = tokens("Rule 29: be kind.")
        carried = [one for one in numbers(shown) if one <= 30]
        assert carried == list(range(31 - 100 // rule, 31))
        assert all(one > 60 for one in numbers(shown)[len(carried) :])
        assert shown["starts_with_user"]

    async def test_over_several_branches_the_newest_of_ours_are_read(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await append(client, "s", *(f"Turn {number}" for number in range(1, 31)))
        await execute(
            dsn,
            "UPDATE sessions SET set_aside = '{[5,8),[10,25),[27,31)}', window_seq = -1 "
            "WHERE tenant_id = $1",
            acme.tenant_id,
        )
        await append(client, "s", "Turn 31")

        assert numbers(await trim(client, max_tokens=5 * tokens("Turn 31"))) == [8, 9, 25, 26, 31]
        assert numbers(await trim(client, "first_last", keep=3))[0] == 1

    async def test_all_of_a_window_is_read_for_compaction(
        self, client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
    ) -> None:
        rule = {"role": "system", "content": "Be kind."}
        call = {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]}
        done = {"role": "tool", "tool_call_id": "a", "content": "done"}
        event = {"role": "system", "content": "Ana came.", "metadata": {"event_type": "login"}}
        stored = await append(client, "s", rule, "One", call, done, event, "Two")
        await move(dsn, acme, 1)
        access, now = Access(acme.tenant_id), datetime.now(UTC)

        async with runtime.database.begin(acme.tenant_id) as db:
            session = await SessionRepository(db, access).get("s", lock=True)
            windows = WindowRepository(db, access, session)
            whole = await windows.whole(WindowRequest(WindowPolicy(), now))
            rows = await windows.messages(2, 4)

        read = [(m.sequence_no, m.role, m.calls, m.answers, m.event_type) for m in whole.messages]
        assert read == [
            (2, "user", (), None, None), (3, "assistant", ("a", "b"), None, None),
            (4, "tool", (), "a", None), (5, "system", (), None, "login"),
            (6, "user", (), None, None),
        ]  # fmt: skip
        assert whole.answerable_since == now - timedelta(hours=24)
        assert [one.message_id for one in whole.messages] == [
            one["message_id"] for one in stored["messages"][1:]
        ]
        assert [row.content for row in rows] == ["One", "", "done"]


CROWD = """
WITH talk AS (
    INSERT INTO sessions (tenant_id, session_id, user_id, agent_id, last_sequence_no, window_seq,
        last_user_seq, window_messages, window_tokens, set_aside)
    VALUES ($1, $2, 'ana', 'default', $3::int8, $3::int8, $3::int8 - 1, $3::int8, 40 * $3::int8,
        $4::text::int8multirange)
)
INSERT INTO messages (tenant_id, message_id, session_id, user_id, agent_id, role, content,
    sequence_no, create_time, token_count, metadata)
SELECT $1, $2 || n, $2, 'ana', 'default',
    CASE WHEN n % 10 = 5 THEN 'system' WHEN n % 2 = 1 THEN 'user' ELSE 'assistant' END,
    repeat('The blue notebook lies there. ', 5), n, now() + n * interval '1 second', 40,
    CASE WHEN n = 5 THEN '{}'::jsonb ELSE '{"event_type": "login"}'::jsonb END
FROM generate_series(1, $3::int8) AS n
"""
LENGTHS = {"short": (100, "{}"), "long": (1_000, "{}"), "longer": (10_000, "{}"),
           "restored": (10_000, "{[300,9990)}")}  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def talkative_dsn(postgres: EmbeddedPostgres) -> str:
    """A database of these plans alone: what other tests store changes what is cheapest."""
    return await migrated_database(postgres, "talkative")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def talkative(settings: Settings, talkative_dsn: str) -> Caller:
    """A tenant with sessions of 100, 1,000 and 10,000 messages that were never compacted."""
    dsn = talkative_dsn
    async with open_runtime(settings, served(dsn)) as runtime:
        tenant = await make_tenant(runtime)
    await execute(
        dsn,
        "INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'default', 'A')",
        tenant.tenant_id,
    )
    await execute(
        dsn,
        "INSERT INTO users (tenant_id, user_id, agent_id) VALUES ($1, 'ana', 'default')",
        tenant.tenant_id,
    )
    for name, (length, aside) in LENGTHS.items():
        await execute(dsn, CROWD, tenant.tenant_id, name, length, aside)
    await execute(dsn, "ANALYZE messages")
    return tenant


@pytest.mark.parametrize("name", LENGTHS)
async def test_reading_the_end_costs_the_same_for_any_length(
    talkative: Caller, talkative_dsn: str, name: str
) -> None:
    """At most a message for each 4 tokens of the budget is looked at, twice."""
    tail = tail_rows(
        tenant="tenant.id", session="s", budget="CAST($3 AS int8)", instructions="CAST($4 AS int8)"
    )
    text = (
        "SELECT read.* FROM (SELECT * FROM sessions WHERE sessions.tenant_id = tenant.id "
        f"AND sessions.session_id = $2) AS s CROSS JOIN LATERAL ({tail}) AS read"
    )

    plan = nodes(await plan_of(talkative_dsn, talkative.tenant_id, text, [name, 400, 100]))

    reads = [node for node in plan if node.get("Relation Name") in {"messages", "approvals"}]
    assert reads
    assert all(node["Node Type"] != "Seq Scan" for node in reads)
    looked_at = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in reads
    )
    # 101 for the budget, in each of its stretches, those shown once more, and a few single ones.
    assert looked_at <= 2 * 101 + 20
    # Thousands of events are passed over by their index.
    assert any(node.get("Index Name") == "messages_idx_instructions" for node in reads)
    # Ten of 40 tokens and one more, the first, and the one instruction.
    assert plan[0]["Actual Rows"] == 13
