"""What a save costs PostgreSQL, and that little of it is never half of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from tests.support.api import counts, execute, found, ok, problem, save
from tests.support.locks import holding, until_somebody_waits
from tests.support.service import tapped
from tests.support.tenants import Caller

KEY = 1
"""Who is calling."""
SAVE = 4
"""BEGIN with tenant and lock, what is stored, what is new, COMMIT."""

TEA = "She drinks green tea in the morning."
SAME = "In the morning she drinks green tea."


def many(number: int, subject: str) -> list[dict[str, str]]:
    return [
        {"content": f"{subject} number {place} is kept in drawer {place}."}
        for place in range(number)
    ]


Trips = Callable[[Awaitable[Any]], Awaitable[tuple[int, Any]]]


@pytest_asyncio.fixture
async def wired(acme: Caller, dsn: str) -> AsyncIterator[tuple[AsyncClient, Trips]]:
    """A client, and a function that counts the round trips of one request of it."""
    async with tapped(dsn, acme.key) as (wire, client):

        async def trips(request: Awaitable[Any]) -> tuple[int, Any]:
            before = wire.round_trips
            answer = await request
            return wire.round_trips - before, answer

        # Statements are prepared once per connection, and the first save makes the user.
        for text in ("She keeps two cats.", "Her office is in the old mill."):
            await save(client, text)
        for name in ("warm", "warmer"):
            headers = {"Idempotency-Key": name}
            body = {"messages": f"Room {name}.", "user_id": "ana", "infer": False}
            await client.post("/memories", json=body, headers=headers)
        yield client, trips


def body(messages: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": messages, "user_id": "ana", "infer": False} | fields


class TestRoundTrips:
    @pytest.mark.parametrize("on_duplicate", ["reject", "return", "supersede", "allow"])
    async def test_a_new_memory_costs_four(
        self, wired: tuple[AsyncClient, Trips], on_duplicate: str
    ) -> None:
        client, trips = wired

        sent, outcome = await trips(save(client, TEA, on_duplicate=on_duplicate))

        assert outcome["event"] == "ADD"
        assert sent == KEY + SAVE

    async def test_a_hundred_cost_as_many_as_one(self, wired: tuple[AsyncClient, Trips]) -> None:
        client, trips = wired
        # What compares many texts is another statement, and is prepared at its first use.
        ok(await client.post("/memories", json=body(many(2, "Crate"))))

        sent, answer = await trips(client.post("/memories", json=body(many(100, "Box"))))

        events = [one["event"] for one in ok(answer)["results"]]
        assert events.count("ADD") > 1
        assert sent == KEY + SAVE

    async def test_a_refusal_costs_four(self, wired: tuple[AsyncClient, Trips]) -> None:
        client, trips = wired
        await save(client, TEA)

        near, answer = await trips(client.post("/memories", json=body(SAME)))
        problem(answer, 409, "duplicate")
        short, answer = await trips(client.post("/memories", json=body("Hm")))
        problem(answer, 422, "gate_rejected")

        assert (near, short) == (KEY + SAVE, KEY + SAVE)

    async def test_a_known_text_costs_one_more_to_show(
        self, wired: tuple[AsyncClient, Trips]
    ) -> None:
        client, trips = wired
        await save(client, TEA)
        await save(client, TEA)

        sent, outcome = await trips(save(client, TEA.upper()))

        assert outcome["event"] == "NONE"
        assert sent == KEY + SAVE + 1

    async def test_hundred_near_ones_are_shown_by_one_more(
        self, wired: tuple[AsyncClient, Trips]
    ) -> None:
        client, trips = wired
        texts = many(30, "Box")
        stored = ok(await client.post("/memories", json=body(texts, on_duplicate="allow")))
        assert {one["event"] for one in stored["results"]} == {"ADD"}
        again = [
            {"content": one["content"].replace(" is kept", " is, as ever, kept")} for one in texts
        ]

        await client.post("/memories", json=body(again, on_duplicate="return"))

        sent, answer = await trips(
            client.post("/memories", json=body(again, on_duplicate="return"))
        )

        events = [one["event"] for one in ok(answer)["results"]]
        assert events.count("NONE") > 10
        assert sent == KEY + SAVE + 1

    async def test_a_key_costs_four_more(self, wired: tuple[AsyncClient, Trips]) -> None:
        client, trips = wired
        headers = {"Idempotency-Key": "once"}

        sent, answer = await trips(client.post("/memories", json=body(TEA), headers=headers))

        ok(answer, 201)
        # Its lock, what is kept under it, the lock of the bucket behind it, and the answer.
        assert sent == KEY + SAVE + 4

    async def test_a_replaced_memory_costs_some_more(
        self, wired: tuple[AsyncClient, Trips]
    ) -> None:
        client, trips = wired
        await save(client, TEA)
        await save(client, SAME, on_duplicate="supersede")

        sent, outcome = await trips(save(client, TEA + " ", on_duplicate="supersede"))

        assert outcome["event"] == "SUPERSEDE"
        # It is locked, changed and read again, with history, events and jobs of its own.
        assert sent <= KEY + SAVE + 10


JOBS = "SELECT 1 FROM jobs WHERE kind = 'profile' FOR UPDATE"
"""What a save writes to behind everything else."""

BLOCKED = "SELECT pid FROM pg_locks WHERE NOT granted AND $1 = ANY(pg_blocking_pids(pid))"


class TestInterrupted:
    async def test_a_save_that_is_cut_off_while_it_writes_leaves_nothing(
        self, client: AsyncClient, acme: Caller, dsn: str, postgres: EmbeddedPostgres
    ) -> None:
        await save(client, "She keeps two cats.")
        before = await counts(dsn, acme.tenant_id)

        async with holding(dsn, JOBS) as holder:
            saving = asyncio.create_task(client.post("/memories", json=body(many(3, "Box"))))
            await until_somebody_waits(dsn, holder)
            [row] = await execute(dsn, BLOCKED, holder)
            killer = await asyncpg.connect(postgres.superuser_dsn)
            await killer.execute("SELECT pg_terminate_backend($1)", row["pid"])
            await killer.close()
            problem(await saving, 503, "database_unavailable")

        assert await counts(dsn, acme.tenant_id) == before
        stored = ok(await client.post("/memories", json=body(many(3, "Box"), on_duplicate="allow")))
        assert [one["event"] for one in stored["results"]] == ["ADD"] * 3

    @pytest.mark.parametrize(
        ("second", "on_duplicate", "event"),
        [(TEA, "allow", "NONE"), (SAME, "return", "NONE"), (SAME, "supersede", "SUPERSEDE")],
    )
    async def test_a_save_sees_what_one_before_it_has_not_committed_yet(
        self, client: AsyncClient, dsn: str, second: str, on_duplicate: str, event: str
    ) -> None:
        await save(client, "She keeps two cats.")

        async with holding(dsn, JOBS) as holder:
            first = asyncio.create_task(save(client, TEA))
            await until_somebody_waits(dsn, holder)
            [row] = await execute(dsn, BLOCKED, holder)
            later = asyncio.create_task(save(client, second, on_duplicate=on_duplicate))
            # It waits for the bucket, before it has read anything.
            await until_somebody_waits(dsn, row["pid"])

        stored, outcome = await first, await later
        assert (stored["event"], outcome["event"]) == ("ADD", event)
        drinking = await found(client, "What does she drink?", user_id="ana", limit=1)
        assert drinking == [outcome["memory_id"]]

    @pytest.mark.parametrize("on_duplicate", ["reject", "return", "supersede"])
    async def test_a_save_decides_nothing_by_what_was_erased_with_its_user(
        self, client: AsyncClient, acme: Caller, dsn: str, on_duplicate: str
    ) -> None:
        await save(client, TEA)

        async with _erasing(dsn, acme.tenant_id, "ana") as eraser:
            saving = asyncio.create_task(save(client, SAME, on_duplicate=on_duplicate))
            await until_somebody_waits(dsn, eraser)

        assert (await saving)["event"] == "ADD"


@asynccontextmanager
async def _erasing(dsn: str, tenant_id: str, user_id: str) -> AsyncIterator[int]:
    """A user whose erasure is committed after the block; the server that erases."""
    eraser = await asyncpg.connect(dsn)
    await eraser.execute("SET ROLE kemem_owner")
    try:
        async with eraser.transaction():
            for table in ("memory_history", "memories", "users"):
                theirs = f"DELETE FROM {table} WHERE tenant_id = $1 AND user_id = $2"
                await eraser.execute(theirs, tenant_id, user_id)
            yield eraser.get_server_pid()
    finally:
        await eraser.close()
