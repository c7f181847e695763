"""What contexts have shown can be read back, by the hash of their content."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.prompting.context.injections import Injections, ShownContext
from app.runtime import Runtime
from tests.support.api import append, every_page, execute, fields, ok, problem, save
from tests.support.locks import until_somebody_waits
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

TEA = "She drinks green tea in the morning."
DOG = "She walks the dog along the river."


@pytest.fixture
async def talk(client: AsyncClient) -> AsyncClient:
    """A session, with something said before in another one."""
    await append(client, "before", "I drink green tea in the morning, and never coffee.")
    await append(client, "s", "What tea do I drink?")
    return client


async def context(client: AsyncClient, session_id: str = "s", **body: Any) -> dict[str, Any]:
    return ok(await client.post(f"/sessions/{session_id}/context", json=body))


async def injections(client: AsyncClient, count: int, **params: Any) -> list[dict[str, Any]]:
    """The contents of the session's contexts, once there are so many."""
    async with asyncio.timeout(PATIENCE):
        while True:
            rows = await every_page(client, "/sessions/s/injections", limit=2, **params)
            if len(rows) >= count:
                return rows
            await asyncio.sleep(0.02)


async def test_every_content_is_listed_with_what_was_put_into_it(talk: AsyncClient) -> None:
    await save(talk, TEA)
    first = await context(talk)
    await injections(talk, 1)
    await save(talk, DOG, on_duplicate="allow")
    second = await context(talk)
    third = await context(talk, include={"memories": False, "excerpts": False})

    rows = await injections(talk, 3)

    assert {row["content_sha256"] for row in rows[:2]} == {
        second["content_sha256"], third["content_sha256"],
    }  # fmt: skip
    by_hash = {row["content_sha256"]: row for row in rows}
    for answer in (first, second, third):
        row = by_hash[answer["content_sha256"]]
        assert row["memory_ids"] == [one["memory_id"] for one in answer["used"]]
        assert row["message_ids"] == [one["message_id"] for one in answer["used_excerpts"]]
        assert row["passage_ids"] == []
        assert (row["tokens"], row["memory_tokens"]) == (answer["tokens"], answer["memory_tokens"])
    assert by_hash[first["content_sha256"]]["message_ids"]
    [found] = await injections(talk, 1, content_sha256=first["content_sha256"])
    assert found == by_hash[first["content_sha256"]]
    assert await injections(talk, 0, content_sha256="0" * 64) == []


async def test_the_same_content_is_listed_once(talk: AsyncClient) -> None:
    await context(talk)
    [before] = await injections(talk, 1)

    await context(talk)

    async with asyncio.timeout(PATIENCE):
        while True:
            [row] = await injections(talk, 1)
            if row != before:
                break
            await asyncio.sleep(0.02)
    assert row["last_at"] > before["last_at"]
    assert row | {"last_at": before["last_at"]} == before


async def test_a_preview_is_true_or_false(talk: AsyncClient) -> None:
    for given in ("yes", "true", 1, None):
        answer = await talk.post("/sessions/talk/context", json={"preview": given})
        assert fields(problem(answer, 422, "invalid_request")) == ["body.preview"]


async def test_a_preview_is_recorded_nowhere(talk: AsyncClient) -> None:
    await save(talk, TEA)
    looked = await context(talk, preview=True)
    shown = await context(talk, include={"memories": False})

    rows = await injections(talk, 1)

    assert looked["used"]
    assert looked["content_sha256"] != shown["content_sha256"]
    assert [row["content_sha256"] for row in rows] == [shown["content_sha256"]]
    assert looked == await context(talk) | {"pressure": looked["pressure"]}


async def test_first_and_last_of_contexts_that_are_written_together(
    talk: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    noted = Injections(runtime.database)
    times = [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(3)]
    for at in times:
        noted.note_context(acme.tenant_id, "s", "a" * 64, ShownContext([], [], [], 9, 4, 5, at))

    await noted.flush()

    [row] = await injections(talk, 1, content_sha256="a" * 64)
    assert [datetime.fromisoformat(row[name]) for name in ("first_at", "last_at")] == [
        times[0], times[-1],
    ]  # fmt: skip


@pytest.mark.parametrize("held", ["sessions", "memories"])
async def test_what_somebody_changes_is_noted_afterwards(
    held: str, talk: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    tea, dog = [(await save(talk, text, on_duplicate="allow"))["memory_id"] for text in (TEA, DOG)]
    noted = Injections(runtime.database)
    noted.note(acme.tenant_id, "s", [tea, dog], datetime(2026, 1, 2, tzinfo=UTC))
    noted.note(acme.tenant_id, "before", [tea], datetime(2026, 1, 2, tzinfo=UTC))
    shown = "SELECT session_id, memory_id FROM context_injections WHERE tenant_id = $1"
    row = {"sessions": "session_id = 's'", "memories": f"memory_id = '{dog}'"}[held]
    free = {("before", tea)} | ({("s", tea)} if held == "memories" else set())
    changing = await asyncpg.connect(dsn)
    await changing.execute("SET ROLE kemem_owner")

    async with changing.transaction():
        await changing.execute(
            f"SELECT FROM {held} WHERE tenant_id = '{acme.tenant_id}' AND {row} FOR UPDATE"
        )
        async with asyncio.timeout(PATIENCE):
            await noted.flush()
        meanwhile = {tuple(each) for each in await execute(dsn, shown, acme.tenant_id)}
    await changing.close()
    await noted.flush()

    assert meanwhile == free
    after = {tuple(each) for each in await execute(dsn, shown, acme.tenant_id)}
    assert after == {("s", tea), ("s", dog), ("before", tea)}


async def test_the_last_flush_waits_for_who_changes_a_memory(
    talk: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    tea = (await save(talk, TEA))["memory_id"]
    noted = Injections(runtime.database)
    noted.note(acme.tenant_id, "s", [tea], datetime(2026, 1, 2, tzinfo=UTC))
    changing = await asyncpg.connect(dsn)
    await changing.execute("SET ROLE kemem_owner")

    async with changing.transaction():
        await changing.execute(
            f"SELECT FROM memories WHERE tenant_id = '{acme.tenant_id}' FOR UPDATE"
        )
        last = asyncio.create_task(noted.flush(everything=True))
        await until_somebody_waits(dsn, changing.get_server_pid())
    await last
    await changing.close()

    shown = "SELECT memory_id FROM context_injections WHERE tenant_id = $1"
    assert [row["memory_id"] for row in await execute(dsn, shown, acme.tenant_id)] == [tea]


async def test_an_append_that_notes_its_use_during_the_last_flush_is_no_deadlock(
    talk: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    tea, dog = [(await save(talk, text, on_duplicate="allow"))["memory_id"] for text in (TEA, DOG)]
    noted = Injections(runtime.database)
    noted.note(acme.tenant_id, "s", [tea], datetime(2026, 1, 1, tzinfo=UTC))
    await noted.flush()
    noted.note(acme.tenant_id, "s", [tea, dog], datetime(2026, 1, 2, tzinfo=UTC))
    appending = await asyncpg.connect(dsn)
    await appending.execute("SET ROLE kemem_owner")

    async with appending.transaction():
        owned = f"WHERE tenant_id = '{acme.tenant_id}' AND session_id = 's' FOR UPDATE"
        await appending.execute(f"SELECT FROM sessions {owned}")
        last = asyncio.create_task(noted.flush(everything=True))
        await until_somebody_waits(dsn, appending.get_server_pid())
        await appending.execute(f"SELECT FROM context_injections {owned}")
    await last

    await appending.close()
    shown = "SELECT memory_id FROM context_injections WHERE tenant_id = $1 AND session_id = 's'"
    rows = await execute(dsn, shown, acme.tenant_id)
    assert {row["memory_id"] for row in rows} == {tea, dog}


async def test_what_could_not_be_written_keeps_its_first_time(
    talk: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    """Also where the same content is shown again while the write fails."""
    times = [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(2)]
    contexts = [ShownContext([], [], [], 9, 4, 5, at) for at in times]

    class DownOnce:
        down = True

        def begin(self, tenant_id: str, **options: Any) -> Any:
            if self.down:
                self.down = False
                noted.note_context(tenant_id, "s", "a" * 64, contexts[1])
                raise ConnectionError
            return runtime.database.begin(tenant_id, **options)

    noted = Injections(DownOnce())
    noted.note_context(acme.tenant_id, "s", "a" * 64, contexts[0])
    with pytest.raises(ConnectionError):
        await noted.flush()

    await noted.flush()

    [row] = await injections(talk, 1, content_sha256="a" * 64)
    assert [datetime.fromisoformat(row[name]) for name in ("first_at", "last_at")] == times


@pytest.mark.parametrize(("value", "status"), [("0" * 63, 422), ("0" * 64, 200), ("0" * 65, 422)])
async def test_a_hash_has_its_length(talk: AsyncClient, value: str, status: int) -> None:
    response = await talk.get("/sessions/s/injections", params={"content_sha256": value})

    assert response.status_code == status


async def test_nobody_reads_those_of_others(
    talk: AsyncClient, stranger: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    await context(talk)
    await injections(talk, 1)
    await append(talk, "s2", "Hi", user_id="ben")
    key = await make_key(runtime, acme.tenant_id, "read", user_id="ben")

    async with client_of(app, key.key) as ben:
        for caller in (stranger, ben):
            response = await caller.get("/sessions/s/injections")
            problem(response, 404, "session_not_found")


async def test_they_go_with_their_session(talk: AsyncClient, dsn: str, acme: Caller) -> None:
    await context(talk)
    await injections(talk, 1)

    ok(await talk.delete("/sessions/s", params={"confirm": True}))

    rows = "SELECT FROM injected_contexts WHERE tenant_id = $1"
    assert await execute(dsn, rows, acme.tenant_id) == []


async def test_they_are_exported(talk: AsyncClient) -> None:
    answer = await context(talk)
    await injections(talk, 1)

    text = (await talk.get("/export")).text

    assert f'"content_sha256":"{answer["content_sha256"]}"' in text.replace(" ", "")
