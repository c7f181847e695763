"""The ledger through its repository and the public route."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.identity.tenants.schemas import TenantPatch
from app.identity.usage.quota import Quota, parsed_prices
from app.identity.usage.repository import UsageRepository
from app.identity.usage.schemas import UsageQuery
from app.identity.usage.service import UsageService
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import execute, fields, ok, problem
from tests.support.databases import served
from tests.support.days import utc_today
from tests.support.model_service import app_of
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant, tenants

NO_MODELS = dict.fromkeys(("extraction", "reconciliation", "profile", "summary"))


async def note(
    runtime: Runtime, caller: Caller, operation: str = "extract", model: str = "m", **used: int
) -> None:
    figures = {"calls": 1, "input_tokens": 0, "output_tokens": 0} | used
    async with runtime.database.begin(caller.tenant_id) as db:
        await UsageRepository(db, caller.tenant_id).note(operation, model, **figures)


async def backdate(dsn: str, caller: Caller, days: int) -> None:
    """Move what was noted so far into the past."""
    statement = "UPDATE usage SET day = day - $2::int WHERE tenant_id = $1"
    await execute(dsn, statement, caller.tenant_id, days)


async def configure(runtime: Runtime, caller: Caller, **config: Any) -> None:
    await tenants(runtime).patch(caller.tenant_id, TenantPatch(config=config))


async def test_a_tenant_that_used_nothing_has_an_empty_ledger(client: AsyncClient) -> None:
    answer = ok(await client.get("/usage"))

    assert answer["items"] == []
    assert answer["totals"] == {
        "calls": 0, "failures": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0,
    }  # fmt: skip
    assert answer["until"] == answer["today"]["day"] == str(utc_today())
    assert answer["since"] == str(utc_today() - timedelta(days=29))
    assert answer["today"]["calls"] == {"limit": None, "used": 0, "remaining": None}
    assert answer["today"]["exhausted"] is None
    assert answer["today"]["resets_at"] == f"{utc_today() + timedelta(days=1)}T00:00:00Z"


async def test_notes_of_one_day_operation_and_model_are_one_row(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    await note(runtime, acme, calls=2, input_tokens=30, output_tokens=4, failures=1)
    await note(runtime, acme, calls=1, input_tokens=10, output_tokens=1)
    await note(runtime, acme, model="n")
    await note(runtime, acme, operation="reconcile")

    answer = ok(await client.get("/usage"))

    assert [(row["operation"], row["model"]) for row in answer["items"]] == [
        ("extract", "m"), ("extract", "n"), ("reconcile", "m"),
    ]  # fmt: skip
    assert answer["items"][0] == {
        "day": str(utc_today()), "operation": "extract", "model": "m",
        "calls": 3, "failures": 1, "input_tokens": 40, "output_tokens": 5, "cost": None,
    }  # fmt: skip
    assert answer["totals"] == {
        "calls": 5, "failures": 1, "input_tokens": 40, "output_tokens": 5, "cost": None,
    }  # fmt: skip


async def test_twenty_notes_at_once_add_up(runtime: Runtime, acme: Caller) -> None:
    """Six connections at a time, and the row is made by one of them."""
    await asyncio.gather(
        *(
            note(runtime, acme, calls=1, input_tokens=number, output_tokens=1, failures=number % 2)
            for number in range(20)
        )
    )

    async with runtime.database.begin(acme.tenant_id) as db:
        totals = await UsageRepository(db, acme.tenant_id).today()
    assert (totals.calls, totals.input_tokens, totals.output_tokens, totals.failures) == (
        20, 190, 20, 10,
    )  # fmt: skip
    assert totals.day == utc_today()


async def test_the_list_is_narrowed_by_days_operation_and_model(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    await note(runtime, acme, calls=4)
    await backdate(dsn, acme, 2)
    await note(runtime, acme, calls=2)
    await note(runtime, acme, model="n", calls=1)
    await note(runtime, acme, operation="reconcile", calls=8)

    async def calls(**params: Any) -> list[int]:
        answer = ok(await client.get("/usage", params=params))
        assert answer["totals"]["calls"] == sum(row["calls"] for row in answer["items"])
        return [row["calls"] for row in answer["items"]]

    before = str(utc_today() - timedelta(days=2))
    assert await calls() == [2, 1, 8, 4]
    assert await calls(since=str(utc_today() - timedelta(days=1))) == [2, 1, 8]
    assert await calls(since=before, until=before) == [4]
    assert await calls(until=str(utc_today() - timedelta(days=3))) == []
    assert await calls(operation="reconcile") == [8]
    assert await calls(model="n") == [1]
    assert await calls(model="n", operation="reconcile") == []


async def test_a_hundred_days_are_shown_and_no_more(client: AsyncClient) -> None:
    for days, status in ((0, 200), (99, 200), (100, 422), (-1, 422)):
        since = utc_today() - timedelta(days=days)
        response = await client.get(
            "/usage", params={"since": str(since), "until": str(utc_today())}
        )
        if status == 200:
            assert ok(response)["since"] == str(since)
        else:
            assert fields(problem(response, 422, "invalid_request")) == ["query.since"]


@pytest.mark.parametrize("day", ["0001-01-01", "0001-01-30", "9999-12-31"])
async def test_the_ends_of_the_calendar_are_days_like_others(client: AsyncClient, day: str) -> None:
    for params in ({"until": day}, {"since": day, "until": day}):
        answer = ok(await client.get("/usage", params=params))
        assert answer["until"] == day
        assert answer["items"] == []


@for_each(
    ("name", "value"),
    [
        ("since", "yesterday"), ("until", "2026-13-01"), ("operation", ""), ("operation", "x" * 41),
        ("model", "x" * 256), ("tenant_id", "acme"),
    ],
)  # fmt: skip
async def test_what_cannot_be_asked_is_named(client: AsyncClient, name: str, value: str) -> None:
    response = await client.get("/usage", params={name: value})

    assert fields(problem(response, 422, "invalid_request")) == [f"query.{name}"]


async def test_a_tenant_sees_its_own_quota_and_what_is_left(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    await configure(runtime, acme, daily_calls=3, daily_tokens=100)
    await note(runtime, acme, calls=9)
    await backdate(dsn, acme, 1)
    await note(runtime, acme, calls=2, input_tokens=60, output_tokens=10)

    before = ok(await client.get("/usage", params={"model": "unknown"}))["today"]
    await note(runtime, acme, calls=2)
    after = ok(await client.get("/usage"))["today"]

    assert before["calls"] == {"limit": 3, "used": 2, "remaining": 1}
    assert before["tokens"] == {"limit": 100, "used": 70, "remaining": 30}
    assert before["exhausted"] is None
    assert after["calls"] == {"limit": 3, "used": 4, "remaining": 0}
    assert after["exhausted"] == "daily_calls"


async def test_the_deployments_quota_holds_where_the_tenants_is_malformed(
    runtime: Runtime, acme: Caller, dsn: str
) -> None:
    """Written past the API, as an older release may have left it."""
    statement = """UPDATE tenants SET config = '{"daily_calls": "many", "daily_tokens": -1}'
        WHERE tenant_id = $1"""
    await execute(dsn, statement, acme.tenant_id)
    principal = await runtime.identification.identify(acme.key)

    quota = Quota(daily_calls=7, daily_tokens=70)
    service = UsageService(runtime.work, quota, {}, lambda _: NO_MODELS)
    today = (await service.get(principal, UsageQuery())).today

    assert (today.calls.limit, today.tokens.limit) == (7, 70)


async def test_costs_are_told_by_the_prices_of_the_deployment(
    runtime: Runtime, acme: Caller
) -> None:
    await note(runtime, acme, model="priced", input_tokens=2_000_000, output_tokens=500_000)
    principal = await runtime.identification.identify(acme.key)
    prices = parsed_prices("openai/priced=0.15/0.6")
    names = NO_MODELS | {"extraction": "priced"}
    service = UsageService(runtime.work, Quota(), prices, lambda _: names)

    [row] = (await service.get(principal, UsageQuery())).items
    await note(runtime, acme, model="unpriced", input_tokens=1)
    whole = await service.get(principal, UsageQuery())

    assert row.cost == pytest.approx(0.6)
    assert [one.cost for one in whole.items] == [row.cost, None]
    # Part of a sum is not the sum.
    assert whole.totals.cost is None
    assert whole.models.profile is None
    assert whole.models.extraction is not None
    assert whole.models.extraction.model_dump() == {
        "model": "priced", "price": {"input": 0.15, "output": 0.6},
    }  # fmt: skip


async def test_models_are_those_that_the_tenant_names(dsn: str) -> None:
    given = Settings(
        _env_file=None,
        openai_base_url="http://127.0.0.1:9/v1",
        extraction_model="openai/m",
        model_prices="m=1/2",
    )
    async with open_runtime(given, served(dsn)) as runtime, app_of(runtime) as app:
        caller = await make_tenant(runtime)
        async with client_of(app, caller.key) as client:
            deployments = ok(await client.get("/usage"))["models"]
            await configure(runtime, caller, model="rules", profile_model="openai/n")
            own = ok(await client.get("/usage"))["models"]

    priced = {"model": "m", "price": {"input": 1.0, "output": 2.0}}
    assert deployments == NO_MODELS | dict.fromkeys(
        ("extraction", "reconciliation", "profile"), priced
    )
    assert own == NO_MODELS | {"profile": {"model": "n", "price": None}}


async def test_another_tenant_sees_nothing_of_it(
    stranger: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    await note(runtime, acme, calls=5)

    answer = ok(await stranger.get("/usage"))

    assert answer["items"] == []
    assert answer["today"]["calls"]["used"] == 0


async def test_a_reader_may_look_and_a_restricted_key_may_not(
    app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    reader = await make_key(runtime, acme.tenant_id, "read")
    async with client_of(app, reader.key) as client:
        ok(await client.get("/usage"))
    for restriction in ({"user_id": "ana"}, {"agent_id": "helper"}):
        bound = await make_key(runtime, acme.tenant_id, "write", **restriction)
        async with client_of(app, bound.key) as client:
            problem(await client.get("/usage"), 403, "key_restricted")
