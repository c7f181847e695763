"""What is written often is planned once, where one PostgreSQL has all tenants."""

from typing import Final

import pytest

from app.platform.database.engine import driver_of, open_database
from app.platform.database.transactions import ONE_PLAN
from tests.support.api import append, save
from tests.support.databases import served
from tests.support.service import client_of, service
from tests.support.tenants import Caller
from tests.support.wire import overheard

ASKED: Final = "SELECT user_id FROM users WHERE user_id = ANY (CAST($1 AS text[]))"
PLANS: Final = "SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE statement = $1"
TIMES: Final = 8


@pytest.mark.parametrize(
    ("hot", "cluster", "custom"), [(True, False, 0), (True, True, 5), (False, False, 5)]
)
async def test_statements_of_a_hot_unit_are_planned_once(
    dsn: str, hot: bool, cluster: bool, custom: int
) -> None:
    """PostgreSQL itself plans for the values at least five times before it compares costs."""
    async with (
        open_database(served(dsn), pool_size=1, read_in_transactions=cluster) as database,
        database.begin("t", hot=hot) as db,
    ):
        driver = await driver_of(db)
        for _ in range(TIMES):
            await driver.fetch(ASKED, ["ana"])
        [plans] = await driver.fetch(PLANS, ASKED)

    assert plans["custom_plans"] + plans["generic_plans"] == TIMES
    assert (plans["custom_plans"] >= custom) if custom else (plans["custom_plans"] == 0)


async def test_the_next_unit_of_the_connection_plans_as_postgresql_does(dsn: str) -> None:
    async with open_database(served(dsn), pool_size=1) as database:
        async with database.begin("t", hot=True) as db:
            driver = await driver_of(db)
            inside = [await driver.fetchval(f"SHOW {name}") for name in ONE_PLAN]
        async with database.begin("t") as db:
            driver = await driver_of(db)
            after = [await driver.fetchval(f"SHOW {name}") for name in ONE_PLAN]

    assert inside == list(ONE_PLAN.values())
    assert after == ["auto", "on"]


async def test_saves_and_appends_are_hot(dsn: str, acme: Caller) -> None:
    async with (
        overheard(dsn) as (transcript, way),
        service(way) as app,
        client_of(app, acme.key) as client,
    ):
        await append(client, "talk", "The bees live behind the house.")
        await save(client, "She drinks green tea.")
        begun = [one.text for one in transcript.sent() if one.text.startswith("BEGIN;")]

    assert len([text for text in begun if "plan_cache_mode" in text]) == 2
