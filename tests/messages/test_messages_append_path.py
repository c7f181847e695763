"""How an append asks the database: seldom, and by nothing that is older than its lock."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from httpx import AsyncClient, Response

from app.conversation.messages.append_repository import COLUMNS
from app.conversation.messages.models import Message
from app.platform.jobs.orders import CHANNEL
from tests.support.api import append, dump, every_page, execute, ok, problem
from tests.support.locks import holding
from tests.support.patience import PATIENCE
from tests.support.service import tapped
from tests.support.tenants import Caller

KEY = 1
"""Round trips to see whose key it is."""

CALLING = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "look"}]}
ANSWERING = {"role": "tool", "content": "Found.", "tool_call_id": "c1"}

BATCHES: dict[str, list[Any]] = {
    "one": ["I moved to Munich."],
    "two": ["我搬到了慕尼黑。", {"role": "assistant", "content": "那里怎么样？"}],
    "twenty": [f"Station {number} of the journey." for number in range(20)],
    "calls": [CALLING],
    "trivial": ["Ok."],
}


@asynccontextmanager
async def asking(dsn: str, caller: Caller) -> AsyncIterator[tuple[Any, AsyncClient]]:
    """A service whose statements are prepared, with what it says to PostgreSQL counted."""
    async with tapped(dsn, caller.key) as (wire, client):
        await append(client, "first", "Begin.")
        policy = {"window_policy": {"checkpoint_every": 0}}
        ok(await client.patch("/agents/default", json=policy, headers={"If-Match": "1"}))
        for number in range(2):
            for name, batch in BATCHES.items():
                await append(client, f"warm-{name}-{number}", *batch)
                await append(client, f"warm-{name}-{number}", *batch)
            await append(client, f"warm-calls-{number}", ANSWERING)
        yield wire, client


class TestRoundTrips:
    async def test_append_reads_once_and_writes_once(self, acme: Caller, dsn: str) -> None:
        async with asking(dsn, acme) as (wire, client):
            asked = {}
            for name, batch in BATCHES.items():
                before = wire.round_trips
                await append(client, f"warm-{name}-0", *batch)
                asked[name] = wire.round_trips - before
        assert asked == dict.fromkeys(BATCHES, KEY + 4)

    async def test_result_of_a_call_costs_no_further_one(self, acme: Caller, dsn: str) -> None:
        async with asking(dsn, acme) as (wire, client):
            await append(client, "warm-calls-0", CALLING)
            before = wire.round_trips
            await append(client, "warm-calls-0", ANSWERING)
            assert wire.round_trips - before == KEY + 4

    async def test_full_window_costs_no_further_one(self, acme: Caller, dsn: str) -> None:
        policy = {"budget_tokens": 100, "checkpoint_every": 0}
        async with asking(dsn, acme) as (wire, client):
            ok(await client.patch("/agents/default", json={"window_policy": policy},
                                  headers={"If-Match": "2"}))  # fmt: skip
            for number in range(2):
                await append(client, f"warm-full-{number}", *BATCHES["twenty"])
                await append(client, f"warm-full-{number}", "One more.")
            before = wire.round_trips
            answer = await append(client, "warm-full-0", "And one.")
            assert answer["pressure"]["compaction_job_id"] is not None
            assert wire.round_trips - before == KEY + 4

    async def test_checkpoint_costs_one_more(self, acme: Caller, dsn: str) -> None:
        policy = {"checkpoint_every": 1}
        async with asking(dsn, acme) as (wire, client):
            ok(await client.patch("/agents/default", json={"window_policy": policy},
                                  headers={"If-Match": "2"}))  # fmt: skip
            for number in range(2):
                await append(client, f"warm-kept-{number}", *BATCHES["two"])
                await append(client, f"warm-kept-{number}", *BATCHES["two"])
            before = wire.round_trips
            await append(client, "warm-kept-0", *BATCHES["two"])
            assert wire.round_trips - before == KEY + 5
            made = await every_page(client, "/sessions/warm-kept-0/checkpoints")
        assert [one["message_seq"] for one in made] == [6, 4, 2]

    async def test_new_session_costs_little_more(self, acme: Caller, dsn: str) -> None:
        async with asking(dsn, acme) as (wire, client):
            before = wire.round_trips
            await append(client, "new", *BATCHES["two"])
            assert wire.round_trips - before == KEY + 5


async def _two_wait(dsn: str) -> None:
    """Until two transactions wait for a lock."""
    async with asyncio.timeout(PATIENCE):
        while (  # noqa: ASYNC110 (only the table says so)
            await execute(dsn, "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
        )[0]["count"] < 2:
            await asyncio.sleep(0.05)


async def _one_after_the_other(
    dsn: str, session_id: str, first: Awaitable[Any], second: Awaitable[Any]
) -> tuple[Any, Any]:
    """Both begin while the session is locked; so the second has begun before the first ends."""
    statement = f"SELECT 1 FROM sessions WHERE session_id = '{session_id}' FOR UPDATE"
    async with holding(dsn, statement) as holder:
        one = asyncio.ensure_future(first)
        async with asyncio.timeout(PATIENCE):
            while not await execute(  # noqa: ASYNC110 (only the table says so)
                dsn, "SELECT 1 FROM pg_locks WHERE NOT granted AND $1 = ANY(pg_blocking_pids(pid))",
                holder,
            ):  # fmt: skip
                await asyncio.sleep(0.05)
        other = asyncio.ensure_future(second)
        await _two_wait(dsn)
    return await one, await other


def _post(client: AsyncClient, session_id: str, *messages: Any) -> Awaitable[Response]:
    batch = [{"role": "user", "content": one} if isinstance(one, str) else one for one in messages]
    return client.post(f"/sessions/{session_id}/messages", json={"messages": batch})


class TestBehindALock:
    """What was read before the lock was got decides nothing."""

    async def test_two_appends_leave_no_gap_and_are_chained(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        session_id = f"s-{acme.tenant_id}"
        await append(client, session_id, "Begin.")

        answers = await _one_after_the_other(
            dsn, session_id,
            append(client, session_id, "A.", "B."), append(client, session_id, "C."),
        )  # fmt: skip

        rows = await every_page(client, f"/sessions/{session_id}/messages")
        assert [row["sequence_no"] for row in rows] == [1, 2, 3, 4]
        assert [row["content"] for row in rows] == ["Begin.", "A.", "B.", "C."]
        parents = [row["parent_message_id"] for row in rows]
        assert parents == [None, *(row["message_id"] for row in rows[:-1])]
        assert rows[1:] == [*answers[0]["messages"], *answers[1]["messages"]]

    async def test_repeated_message_is_found(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        session_id = f"s-{acme.tenant_id}"
        await append(client, session_id, "Begin.")
        message = {"role": "user", "content": "Once.", "message_id": "m1"}

        first, second = await _one_after_the_other(
            dsn, session_id, _post(client, session_id, message), _post(client, session_id, message)
        )

        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json()["messages"] == second.json()["messages"]

    async def test_call_is_answered_once(self, client: AsyncClient, dsn: str, acme: Caller) -> None:
        session_id = f"s-{acme.tenant_id}"
        await append(client, session_id, "Begin.", CALLING)

        first, second = await _one_after_the_other(
            dsn, session_id, _post(client, session_id, ANSWERING),
            _post(client, session_id, ANSWERING),
        )  # fmt: skip

        assert first.status_code == 201
        problem(second, 422, "unknown_tool_call")

    async def test_deleted_message_is_no_parent(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        session_id = f"s-{acme.tenant_id}"
        [kept, gone] = (await append(client, session_id, "Begin.", "Gone."))["messages"]

        _, answer = await _one_after_the_other(
            dsn, session_id,
            client.delete(f"/sessions/{session_id}/messages/{gone['message_id']}"),
            append(client, session_id, "After."),
        )  # fmt: skip

        [message] = answer["messages"]
        assert (message["parent_message_id"], message["sequence_no"]) == (kept["message_id"], 3)


class TestOneWrite:
    async def test_answer_is_what_is_stored(self, client: AsyncClient) -> None:
        parts = [{"type": "text", "text": "Was ist das? 🙂"}, {"type": "image_url", "image_url": {
            "url": "data:image/png;base64,iVBORw0KGgo="}}]  # fmt: skip
        metadata = {"a": [1, 2.5, None, True], "客户": {"é": "\\ \" '"}, "big": 2**62}
        answer = await append(
            client,
            "s",
            {"role": "user", "content_parts": parts, "metadata": metadata, "name": "Ana"},
            {"role": "user", "content": "Zeile\n\tzwei \\x41 {1:2} \u2028 𠮷", "message_id": "m"},
            {**CALLING, "tool_calls": [{"id": "c1", "name": "n", "input": {"q": []}}]},
            {**ANSWERING, "content": "", "content_type": "result"},
            {"role": "system", "content": "Branch.", "parent_message_id": None},
        )

        stored = await every_page(client, "/sessions/s/messages")
        assert answer["messages"] == stored
        assert stored[0]["metadata"] == metadata
        assert stored[0]["content_parts"] == parts

    async def test_refused_append_leaves_nothing(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        """It is refused after the messages were written."""
        await append(client, "s", "Begin.")
        before = await dump(dsn, acme.tenant_id)
        body = {
            "user_id": "new",
            "messages": [{"role": "user", "content": "I moved to Munich."}],
            "state": {"a": 1},
            "state_version": 7,
        }

        for session_id in ("new", "s"):
            if session_id == "s":
                body["user_id"] = "ana"
            response = await client.post(f"/sessions/{session_id}/messages", json=body)
            problem(response, 409, "version_conflict")

        assert await dump(dsn, acme.tenant_id) == before

    async def test_id_of_another_session_is_refused_and_named(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await append(client, "s", {"role": "user", "content": "A.", "message_id": "m"})
        await append(client, "t", "Begin.")
        before = await dump(dsn, acme.tenant_id)

        refused = await _post(client, "t", "B.", {"role": "user", "content": "A.",
                                                  "message_id": "m"})  # fmt: skip

        assert problem(refused, 409, "id_taken")["message_id"] == "m"
        assert await dump(dsn, acme.tenant_id) == before

    async def test_compaction_wakes_a_worker(self, client: AsyncClient, dsn: str) -> None:
        await append(client, "s", "Begin.")
        ok(await client.patch("/sessions/s", json={"window_policy": {"budget_tokens": 100}},
                              headers={"If-Match": "1"}))  # fmt: skip
        told = asyncio.Event()
        listener = await asyncpg.connect(dsn)
        try:
            await listener.add_listener(CHANNEL, lambda *_: told.set())
            answer = await append(client, "s", *BATCHES["twenty"])
            async with asyncio.timeout(PATIENCE):
                await told.wait()
        finally:
            await listener.close()

        assert answer["pressure"]["compaction_job_id"] is not None


def test_every_column_of_a_message_is_written() -> None:
    elsewhere = {"tenant_id", "session_id", "agent_id", "user_id", "copied_from"}

    assert {*COLUMNS} == {column.name for column in Message.__table__.columns} - elsewhere
