"""Users found by the beginning of their id or name."""

from typing import Any

import pytest
from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.identity.users.repository import UserRepository
from app.platform.embedded.server import EmbeddedPostgres
from app.settings import Settings
from tests.support.api import execute, ok
from tests.support.plans import Sent, literal, new_crowd, nodes, sent_by
from tests.support.rows import for_each

PEOPLE = {
    "ana": "Zoe", "ben": "Ana Lima", "cid": "ANA-7", "dan": "ananas", "eve": "李明", "fay": "李娜",
    "gus": "50% off", "Ana2": None, "hal": "Mariana",
}  # fmt: skip

USERS = 20_000
_AGENT = """
INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'default', 'default')
ON CONFLICT DO NOTHING
"""
_CROWD = """
INSERT INTO users (tenant_id, user_id, agent_id, user_name, create_time)
SELECT $1, 'user-' || n, 'default', 'Name ' || n, now() - n * interval '1 second'
FROM generate_series(1, $2::int) AS n
"""


@pytest.fixture
async def people(client: AsyncClient) -> None:
    for user_id, name in PEOPLE.items():
        ok(await client.post("/users", json={"user_id": user_id, "user_name": name}), 201)


@for_each(
    ("prefix", "expected"),
    [
        ("ana", ["dan", "cid", "ben", "ana"]),
        ("Ana", ["Ana2", "dan", "cid", "ben"]),
        ("ANA", ["dan", "cid", "ben"]),
        ("ana l", ["ben"]),
        ("李", ["fay", "eve"]),
        ("50%", ["gus"]),
        ("%", []),
        ("_", []),
        ("lima", []),
    ],
)
async def test_users_are_found_by_the_beginning_of_id_or_name(
    client: AsyncClient, people: None, prefix: str, expected: list[str]
) -> None:
    found = ok(await client.get("/users", params={"starts_with": prefix}))["items"]

    assert [user["user_id"] for user in found] == expected


async def test_beginning_is_compared_in_the_form_in_which_ids_are_stored(
    client: AsyncClient,
) -> None:
    ok(await client.post("/users", json={"user_id": "Zoë"}), 201)

    found = ok(await client.get("/users", params={"starts_with": "Zoe\u0308"}))["items"]

    assert [user["user_id"] for user in found] == ["Zoë"]


async def test_found_users_are_paged_and_narrowed_like_others(
    client: AsyncClient, people: None
) -> None:
    params = {"starts_with": "ana", "limit": 3}
    first = ok(await client.get("/users", params=params))
    rest = ok(await client.get("/users", params=params | {"cursor": first["next_cursor"]}))
    disabled = ok(await client.get("/users", params=params | {"status": "disabled"}))

    assert [user["user_id"] for user in rest["items"]] == ["ana"]
    assert (rest["next_cursor"], disabled["items"]) == (None, [])


async def plans(db: Any, sent: Sent) -> list[dict[str, Any]]:
    """The plans of statements with their values in them."""
    driver = (await (await db.connection()).get_raw_connection()).driver_connection
    await driver.execute("SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_custom_plan")
    found = []
    for text, values in sent:
        await driver.execute(f"PREPARE once_more AS {text}")
        call = f"EXECUTE once_more({', '.join(map(literal, values))})"
        rows = await driver.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {call}")
        await driver.execute("DEALLOCATE once_more")
        found.append(rows[0][0][0]["Plan"])
    return found


async def test_few_of_many_users_are_found_by_index(
    postgres: EmbeddedPostgres, settings: Settings
) -> None:
    async with new_crowd(postgres, settings, "users_plans") as crowd:
        await execute(crowd.dsn, _AGENT, crowd.tenant_id)
        await execute(crowd.dsn, _CROWD, crowd.tenant_id, USERS)
        await execute(crowd.dsn, "ANALYZE users")
        async with crowd.runtime.database.begin(crowd.tenant_id) as db:
            users = UserRepository(db, Access(crowd.tenant_id))
            for prefix in ("name 1234", "user-1234"):
                with sent_by((await db.connection()).sync_connection) as sent:
                    found = await users.list_users(
                        start=None, limit=50, filters={}, starts_with=prefix
                    )
                [plan] = await plans(db, sent)
                scans = nodes(plan)
                read = sum(node["Actual Rows"] for node in scans if "Index Name" in node)
                used = {node["Index Name"] for node in scans if "Index Name" in node}

                assert len(found) == 11
                assert used == {"users_pkey", "users_idx_user_name"}
                assert read <= 11
