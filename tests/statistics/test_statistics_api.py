"""Statistics as a client reads them: what was searched, refused, read and remembered."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.governance.statistics.rollup import Rollup
from app.governance.statistics.schemas import MemoryStatisticsQuery
from app.governance.statistics.service import MOST_AGENTS, StatisticsService
from app.identity.usage.repository import DailyCountRepository, DailySum
from app.platform.work.unit import Work
from app.runtime import Runtime
from tests.support.api import append, execute, fields, ok, problem, save, search
from tests.support.days import utc_today
from tests.support.model_service import app_of
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key
from tests.support.working import extracted, working

ROUTES = ("effect", "refusals", "extraction", "memories")


@pytest.fixture
async def client(runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    """A service on the runtime that the test holds, so that it can write what is counted."""
    async with app_of(runtime) as application, client_of(application, acme.key) as opened:
        yield opened


async def stats(client: AsyncClient, name: str, **params: Any) -> dict[str, Any]:
    answer: dict[str, Any] = ok(await client.get(f"/stats/{name}", params=params))
    return answer


async def context(client: AsyncClient, session_id: str, **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = ok(await client.post(f"/sessions/{session_id}/context", json=body))
    return answer


async def test_a_new_tenant_has_no_figures(client: AsyncClient) -> None:
    for name in ROUTES:
        answer = await stats(client, name)
        assert (answer["since"], answer["until"]) == (
            str(utc_today() - timedelta(29)),
            str(utc_today()),
        )
        assert answer["items"] == [], name
    effect = (await stats(client, "effect"))["totals"]
    assert effect["searches"] == {
        "count": 0, "queries": 0, "hits": 0, "hit_rate": None, "p50_ms": None, "p95_ms": None,
    }  # fmt: skip
    assert effect["items"]["use_rate"] is None
    assert (await stats(client, "memories"))["now"] == {
        "day": str(utc_today()), "total": 0, "by_status": {}, "by_memory_type": {}, "never_used": 0,
        "in_conflict": 0, "live": True, "duplicates": None,
    }  # fmt: skip


async def test_searches_and_contexts_are_counted_with_their_hits(
    client: AsyncClient, runtime: Runtime
) -> None:
    await save(client, "She drinks green tea every morning.")
    await save(client, "She drinks green tea every morning.", user_id="ben")
    await append(client, "s", "Hello")
    await search(client, "green tea every morning")
    await search(client, "green tea every morning", user_id="nobody")
    await search(client, "the capital of Mongolia")
    await search(client, "the capital of Mongolia", user_id="ana", threshold=0.0)
    await context(client, "s", query="green tea every morning")
    await context(client, "s", query="the capital of Mongolia")
    await context(client, "s", include={"memories": False, "corrections": False})
    await runtime.activity.flush(everything=True)

    answer = await stats(client, "effect")

    searches, contexts = answer["totals"]["searches"], answer["totals"]["contexts"]
    assert (searches["count"], searches["queries"], searches["hits"]) == (4, 4, 2)
    assert searches["hit_rate"] == 0.5
    assert 0 < searches["p50_ms"] <= searches["p95_ms"]
    assert (contexts["count"], contexts["queries"], contexts["hits"]) == (3, 2, 1)
    [day] = answer["items"]
    assert (day["day"], day["agent_id"]) == (str(utc_today()), None)
    assert {name: day[name] for name in answer["totals"]} == answer["totals"]


async def test_a_preview_counts_for_nothing(client: AsyncClient, runtime: Runtime) -> None:
    await append(client, "s", "Hello")
    await search(client, "tea", user_id="ana", preview=True)
    await context(client, "s", query="tea", preview=True)
    await runtime.activity.flush(everything=True)

    assert (await stats(client, "effect"))["items"] == []


async def test_a_memory_in_contexts_of_a_session_counts_once(
    client: AsyncClient, runtime: Runtime
) -> None:
    await save(client, "She drinks green tea every morning.")
    for session in ("s", "t"):
        await append(client, session, "Hello")
        for _ in range(2):
            await context(client, session, query="green tea")
    await runtime.injections.flush(everything=True)

    items = (await stats(client, "effect"))["totals"]["items"]

    assert (items["injected"], items["used"], items["use_rate"]) == (2, 0, 0.0)


async def test_figures_are_shown_by_agent_and_of_one_agent(
    client: AsyncClient, runtime: Runtime
) -> None:
    for agent, times in (("helper", 1), ("rival", 2)):
        ok(await client.post("/agents", json={"agent_id": agent, "agent_name": agent}), 201)
        for _ in range(times):
            await search(client, "tea", agent_id=agent)
    await search(client, "tea", user_id="ana")
    await runtime.activity.flush(everything=True)

    by_agent = (await stats(client, "effect", group_by="agent"))["items"]
    rival = await stats(client, "effect", agent_id="rival")

    assert {row["agent_id"]: row["searches"]["count"] for row in by_agent} == {
        "rival": 2, "helper": 1, "": 1,
    }  # fmt: skip
    assert by_agent[0]["agent_id"] == "rival"
    assert {row["day"] for row in by_agent} == {None}
    assert rival["totals"]["searches"]["count"] == 2


@pytest.mark.parametrize("agents", [MOST_AGENTS, MOST_AGENTS + 1])
async def test_the_busiest_agents_are_shown(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, agents: int
) -> None:
    await execute(
        dsn,
        "INSERT INTO agents (tenant_id, agent_id, agent_name) "
        "SELECT $1, 'agent-' || n, 'An agent' FROM generate_series(1, $2::int) AS n",
        acme.tenant_id, agents,
    )  # fmt: skip
    async with runtime.database.begin(acme.tenant_id) as db:
        await DailyCountRepository(db, acme.tenant_id).replace(
            utc_today(),
            ("search",),
            [
                DailySum(utc_today(), "search", f"agent-{number}", "5", number)
                for number in range(1, agents + 1)
            ],
        )

    items = (await stats(client, "effect", group_by="agent"))["items"]

    assert len(items) == MOST_AGENTS
    assert items[0]["agent_id"] == f"agent-{agents}"
    assert items[-1]["agent_id"] == f"agent-{agents - MOST_AGENTS + 1}"


async def test_verdicts_are_counted_by_the_rule(client: AsyncClient) -> None:
    await save(client, "She drinks green tea every morning.")
    for text, codes in (("tea", {}), ("She plays chess.", {"confidence": 0.1})):
        body = {"messages": text, "user_id": "ana", "infer": False} | codes
        problem(await client.post("/memories", json=body), 422, "gate_rejected")

    answer = await stats(client, "refusals")

    assert answer["totals"] == {
        "accepted": 1, "rejected": 2, "by_code": {"low_confidence": 1, "too_short": 1},
    }  # fmt: skip
    assert [row["day"] for row in answer["items"]] == [str(utc_today())]


async def test_runs_are_counted_with_what_they_waited(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    await append(client, "s", "I moved to Bonn last year.")
    await execute(
        dsn,
        "UPDATE messages SET create_time = create_time - interval '40 minutes' "
        "WHERE tenant_id = $1",
        acme.tenant_id,
    )
    async with working(runtime, dsn):
        await extracted(client, "s")

    answer = (await stats(client, "extraction"))["totals"]

    assert (answer["runs"], answer["failed"], answer["messages"]) == (1, 0, 1)
    assert answer["proposals"] >= 1
    assert 1_800_000 <= answer["lag_p50_ms"] <= 3_600_000
    assert answer["duration_p95_ms"] < answer["lag_p50_ms"]


async def test_memories_are_counted_by_type_and_state(client: AsyncClient) -> None:
    await save(client, "She drinks green tea every morning.")
    gone = (await save(client, "She keeps bees.", memory_type="habit"))["memory_id"]
    await save(client, "She plays chess.", memory_type="habit")
    ok(await client.delete(f"/memories/{gone}"), 204)

    now = (await stats(client, "memories"))["now"]

    assert (now["total"], now["by_status"]) == (2, {"active": 2, "deleted": 1})
    assert now["by_memory_type"]["habit"] == 1
    assert (now["never_used"], now["in_conflict"]) == (2, 0)


async def test_what_a_search_found_is_not_never_used(client: AsyncClient, runtime: Runtime) -> None:
    await save(client, "She drinks green tea every morning.")
    await search(client, "green tea")
    await runtime.memory_use.flush(everything=True)

    assert (await stats(client, "memories"))["now"]["never_used"] == 0


async def test_a_large_tenant_is_shown_its_last_count(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    """`live_rows` at the number of memories, and below it."""
    for text in ("She keeps bees.", "She plays chess."):
        await save(client, text)
    principal = await runtime.identification.identify(acme.key)

    async def total(live_rows: int) -> tuple[int, bool] | None:
        service = StatisticsService(Work(runtime.database, enabled=True), live_rows=live_rows)
        now = (await service.memories(principal, MemoryStatisticsQuery())).now
        return now and (now.total, now.live)

    # Nobody waits until all of them are counted.
    assert await total(1) is None
    await Rollup(runtime.database, runtime.catalogue).run(acme.tenant_id)
    await save(client, "She drinks green tea.")

    assert await total(3) == (3, True)
    assert await total(2) == (2, False)


@pytest.mark.parametrize("name", ROUTES)
async def test_days_have_bounds(client: AsyncClient, name: str) -> None:
    for since, status in ((99, 200), (100, 422), (-1, 422)):
        params = {"since": str(utc_today() - timedelta(since)), "until": str(utc_today())}
        response = await client.get(f"/stats/{name}", params=params)
        assert response.status_code == status, (since, response.text)
        if status == 422:
            assert fields(problem(response, 422, "invalid_request")) == ["query.since"]


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
async def test_the_ends_of_the_calendar_are_days(client: AsyncClient, day: str) -> None:
    for name in ROUTES:
        assert (await stats(client, name, since=day, until=day))["items"] == []


@pytest.mark.parametrize("name", ROUTES)
async def test_a_restricted_key_sees_none(
    client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller, name: str
) -> None:
    ok(await client.post("/agents", json={"agent_id": "helper", "agent_name": "H"}), 201)
    for bound in ({"agent_id": "helper"}, {"user_id": "ana"}):
        key = await make_key(runtime, acme.tenant_id, "read", **bound)
        async with client_of(app, key.key) as caller:
            problem(await caller.get(f"/stats/{name}"), 403, "key_restricted")


async def test_another_tenant_sees_nothing(
    client: AsyncClient, stranger: AsyncClient, runtime: Runtime
) -> None:
    await save(client, "She drinks green tea every morning.")
    await search(client, "green tea")
    await runtime.activity.flush(everything=True)

    assert (await stats(client, "effect"))["totals"]["searches"]["count"] == 1
    for name in ROUTES:
        assert (await stats(stranger, name))["items"] == []
    assert (await stats(stranger, "memories"))["now"]["total"] == 0


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("given", ["1764201600", "1764201600.0", "-1"])
async def test_a_number_is_no_day(client: AsyncClient, name: str, given: str) -> None:
    """It would be read as seconds since 1970."""
    for route in ROUTES:
        answer = await client.get(f"/stats/{route}", params={name: given})
        assert fields(problem(answer, 422, "invalid_request")) == [f"query.{name}"], route
