"""Memories that were stored before there was an analyser, or by an older one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.governance.operations.housekeeping import Housekeeping
from app.governance.operations.repository import Retention
from app.language.text.terms import ANALYSER_VERSION
from app.memory.memories import backfill
from app.memory.memories.backfill import MemoryBackfill
from app.runtime import Runtime
from tests.support.api import execute, found, ok, save
from tests.support.tenants import Caller

FORGET = """UPDATE memories SET terms = NULL, term_count = NULL, word_count = NULL,
is_question = NULL, has_time = NULL, analyser = NULL WHERE tenant_id = $1"""
GROW_OLD = "UPDATE memories SET terms = NULL, analyser = analyser - 1 WHERE tenant_id = $1"
WHOLE = """SELECT memory_id, CAST(terms AS text), term_count, word_count, is_question, has_time,
analyser, version, update_time FROM memories WHERE tenant_id = $1 ORDER BY memory_id"""

PAST = """SELECT history_id, CAST(terms AS text), term_count, word_count, is_question, has_time,
analyser, version, create_time FROM memory_history WHERE tenant_id = $1 ORDER BY history_id"""

TEA = "She drinks green tea in 2023."


def past(change: str) -> str:
    """The same change of the history, of what it keeps of words that were replaced."""
    return change.replace("memories", "memory_history") + " AND embedding IS NOT NULL"


async def replaced(client: AsyncClient, content: str = "She keeps bees.", **rest: Any) -> str:
    """Replace what was saved; a moment when it was known."""
    memory_id = (await save(client, TEA, **rest))["memory_id"]
    then = datetime.now(UTC).isoformat()
    ok(await client.patch(f"/memories/{memory_id}", json={"content": content}))
    return then


@pytest.mark.parametrize("change", [FORGET, GROW_OLD])
async def test_housekeeping_reads_them(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, change: str
) -> None:
    await save(client, TEA, metadata={"speaker": "Ana"})
    await save(client, "那只猫睡在沙发上。")
    before = await execute(dsn, WHOLE, acme.tenant_id)
    await execute(dsn, change, acme.tenant_id)
    assert await found(client, "teas", user_id="ana", mode="lexical") == []

    reading = MemoryBackfill(runtime.database)
    house = Housekeeping(runtime.database, Retention(deleted=timedelta(days=9)), memories=reading)
    assert (await house.run(acme.tenant_id))["memories_read"] == 2

    # Neither version nor time of change moved, and the words are as if saved today.
    assert await execute(dsn, WHOLE, acme.tenant_id) == before
    assert len(await found(client, "teas", user_id="ana", mode="lexical")) == 1
    assert (await house.run(acme.tenant_id))["memories_read"] == 0


@pytest.mark.parametrize("most", [1, 2, 3, 4, None])
async def test_a_run_stops_at_its_bound(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, most: int | None
) -> None:
    for number in range(3):
        await save(client, f"Tea number {number} is on the shelf.", on_duplicate="allow")
    await execute(dsn, FORGET, acme.tenant_id)
    reading = MemoryBackfill(runtime.database)
    done: list[int] = []

    assert await reading.count(acme.tenant_id) == 3
    read = await reading.read(acme.tenant_id, most=most, finished=done.append)

    assert read == sum(done) == min(most or 3, 3)
    assert await reading.count(acme.tenant_id) == 3 - read


async def test_more_than_a_batch_is_read(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    for start in range(0, backfill.BATCH + 1, 100):
        texts = [{"content": f"Entry {n} of the list."} for n in range(start, start + 100)]
        body = {"messages": texts, "user_id": "ana", "infer": False, "on_duplicate": "allow"}
        assert (await client.post("/memories", json=body)).status_code == 200
    await execute(dsn, FORGET, acme.tenant_id)
    done: list[int] = []

    await MemoryBackfill(runtime.database).read(acme.tenant_id, most=None, finished=done.append)

    assert done == [backfill.BATCH, 300 - backfill.BATCH]


async def test_deleted_memories_get_no_terms(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    memory_id = (await save(client, TEA))["memory_id"]
    assert (await client.delete(f"/memories/{memory_id}")).status_code == 204

    assert await MemoryBackfill(runtime.database).read(acme.tenant_id, most=None) == 0
    [row] = await execute(dsn, WHOLE, acme.tenant_id)
    assert [row["terms"], row["analyser"]] == [None, None]


async def test_tenants_are_read_apart(
    client: AsyncClient, stranger: AsyncClient, runtime: Runtime, acme: Caller, other: Caller,
    dsn: str,
) -> None:  # fmt: skip
    await save(client, TEA)
    await save(stranger, TEA)
    for caller in (acme, other):
        await execute(dsn, FORGET, caller.tenant_id)

    assert await MemoryBackfill(runtime.database).read(acme.tenant_id, most=None) == 1

    [mine] = await execute(dsn, WHOLE, acme.tenant_id)
    [theirs] = await execute(dsn, WHOLE, other.tenant_id)
    assert [mine["analyser"], theirs["analyser"]] == [ANALYSER_VERSION, None]


class TestWordsThatWereReplaced:
    @pytest.mark.parametrize("change", [FORGET, GROW_OLD])
    async def test_housekeeping_reads_them(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, change: str
    ) -> None:
        then = await replaced(
            client, metadata={"speaker": "Ana"}, valid_from="2020-05-08T00:00:00Z"
        )
        before = await execute(dsn, PAST, acme.tenant_id)
        await execute(dsn, past(change), acme.tenant_id)
        asked = {"user_id": "ana", "mode": "lexical", "known_at": then}
        for words in ("teas", "8 May 2020"):
            assert await found(client, words, **asked) == []

        reading = MemoryBackfill(runtime.database)
        house = Housekeeping(
            runtime.database, Retention(deleted=timedelta(days=9)), memories=reading
        )
        assert await reading.count(acme.tenant_id) == 1
        assert (await house.run(acme.tenant_id))["memories_read"] == 1

        assert await execute(dsn, PAST, acme.tenant_id) == before
        for words in ("teas", "8 May 2020"):
            assert len(await found(client, words, **asked)) == 1
        assert await found(client, "bees", **asked) == []
        assert (await house.run(acme.tenant_id))["memories_read"] == 0

    async def test_the_day_on_which_they_were_said_is_read_too(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        said = {"content": TEA, "said_at": "2020-05-08T09:00:00Z"}
        memory_id = (await save(client, said))["memory_id"]
        then = datetime.now(UTC).isoformat()
        asked = {"user_id": "ana", "mode": "lexical"}
        assert await found(client, "8 May 2020", **asked) == [memory_id]

        ok(await client.patch(f"/memories/{memory_id}", json={"content": "She keeps bees."}))
        assert await found(client, "8 May 2020", **asked) == [memory_id]
        for change in (FORGET, past(FORGET)):
            await execute(dsn, change, acme.tenant_id)
        assert await found(client, "8 May 2020", **asked) == []

        await MemoryBackfill(runtime.database).read(acme.tenant_id, most=None)

        for time in ({}, {"known_at": then}):
            assert await found(client, "8 May 2020", **asked, **time) == [memory_id]

    async def test_the_bound_of_a_run_counts_them_too(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        for content in ("She keeps bees.", "Their car is a red one."):
            await replaced(client, content)
        for change in (FORGET, past(FORGET)):
            await execute(dsn, change, acme.tenant_id)
        reading = MemoryBackfill(runtime.database)

        # Two memories first, and what two of them said before.
        assert await reading.count(acme.tenant_id) == 4
        assert await reading.read(acme.tenant_id, most=1) == 1
        assert await reading.read(acme.tenant_id, most=2) == 2
        assert await execute(dsn, f"SELECT 1 FROM ({PAST}) AS h WHERE analyser > 0", acme.tenant_id)
        assert await reading.read(acme.tenant_id, most=2) == 1
        assert await reading.count(acme.tenant_id) == 0

    async def test_hard_deleted_content_gets_no_terms(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await replaced(client)
        [memory_id] = await found(client, "bees", user_id="ana")
        ok(await client.delete(f"/memories/{memory_id}", params={"hard": True}), 204)

        assert await MemoryBackfill(runtime.database).read(acme.tenant_id, most=None) == 0
        assert not await execute(
            dsn, f"SELECT 1 FROM ({PAST}) AS h WHERE analyser IS NOT NULL", acme.tenant_id
        )

    async def test_tenants_are_read_apart(
        self, client: AsyncClient, stranger: AsyncClient, runtime: Runtime, acme: Caller,
        other: Caller, dsn: str,
    ) -> None:  # fmt: skip
        await replaced(client)
        await replaced(stranger)
        for caller in (acme, other):
            await execute(dsn, past(FORGET), caller.tenant_id)

        assert await MemoryBackfill(runtime.database).read(acme.tenant_id, most=None) == 1

        assert await MemoryBackfill(runtime.database).count(acme.tenant_id) == 0
        assert await MemoryBackfill(runtime.database).count(other.tenant_id) == 1
