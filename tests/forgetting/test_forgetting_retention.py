"""How long sessions keep what nobody needs any more: at, below and above the age of each."""

from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.builders.factory import Factory
from app.governance.forgetting.steps import Forgetting
from app.prompting.checkpoints.archive_service import CheckpointArchiving
from app.runtime import Runtime
from tests.checkpoints.saver_support import put
from tests.support.api import append, every_page, execute, ok
from tests.support.tenants import Caller

DAYS = timedelta(days=40)
EARLY = DAYS - timedelta(minutes=1)
LATE = DAYS + timedelta(days=1)

CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for one in ("c1", "c2")
    ],
}
RESULTS = [{"role": "tool", "tool_call_id": one, "content": "四十二"} for one in ("c1", "c2")]


@pytest.fixture
def forgetting(runtime: Runtime) -> Forgetting:
    return Factory(runtime).get(Forgetting)


@pytest.fixture
async def coach(client: AsyncClient) -> None:
    said = {"checkpoint_retention_days": 40, "message_retention_days": 40}
    body = {"agent_id": "coach", "agent_name": "Coach", "config": {"forgetting": said}}
    ok(await client.post("/agents", json=body), 201)


async def opened(client: AsyncClient, session_id: str, agent_id: str = "coach") -> str:
    body = {"session_id": session_id, "user_id": "ana", "agent_id": agent_id}
    ok(await client.post("/sessions", json=body), 201)
    return session_id


async def aged(
    dsn: str, caller: Caller, table: str, key: str, one: str, ago: timedelta,
    column: str = "create_time",
) -> None:  # fmt: skip
    """Write when something was made, as time would have."""
    await execute(
        dsn,
        f"UPDATE {table} SET {column} = now() - $3::interval WHERE tenant_id = $1 AND {key} = $2",
        caller.tenant_id, one, ago,
    )  # fmt: skip


async def left(dsn: str, caller: Caller, table: str, key: str, session_id: str) -> set[str]:
    rows = await execute(
        dsn,
        f"SELECT {key} FROM {table} WHERE tenant_id = $1 AND session_id = $2",
        caller.tenant_id, session_id,
    )  # fmt: skip
    return {row[0] for row in rows}


async def due(client: AsyncClient, step: str) -> tuple[int, list[str]]:
    shown = ok(await client.post("/forgetting/run", json={"steps": [step]}))["steps"][0]
    return shown["due"], [one["id"] for one in shown["sample"]]


async def acted(
    forgetting: Forgetting, client: AsyncClient, caller: Caller, step: Any, count: int
) -> list[str]:
    """Run a step that must take so many, as many as a look ahead says; what that showed."""
    seen = await due(client, step)
    assert seen[0] == count
    assert await forgetting.run(caller.tenant_id, [step]) == {step: count}
    assert await forgetting.run(caller.tenant_id, [step]) == {step: 0}
    return seen[1]


async def archived(
    client: AsyncClient, runtime: Runtime, caller: Caller, session: str
) -> list[str]:
    """Three checkpoints that were put away, behind a newer one; their ids."""
    path = f"/sessions/{session}/checkpoints"
    ids = [ok(await client.post(path, json={}), 201)["checkpoint_id"] for _ in range(4)]
    await CheckpointArchiving(runtime.database, timedelta(0)).run(caller.tenant_id)
    return ids[:3]


async def snapshots(client: AsyncClient, session: str) -> list[str]:
    """Four copies of the working state; their ids, oldest first."""
    path = f"/sessions/{session}/state"
    ok(await client.put(path, json={"seen": "绿茶"}, headers={"If-Match": "0"}))
    return [ok(await client.post(f"{path}/snapshots"), 201)["snapshot_id"] for _ in range(4)]


@pytest.mark.usefixtures("coach")
class TestCheckpoints:
    async def test_those_put_away_go_once_they_are_old_enough(
        self, forgetting: Forgetting, runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        own = await archived(client, runtime, acme, await opened(client, "talk"))
        other = await archived(client, runtime, acme, await opened(client, "chat", "default"))
        key = "checkpoint_id"
        table = "checkpoint_archive"
        for ids in (own, other):
            for one, ago in zip(ids, (LATE, DAYS, EARLY), strict=True):
                await aged(dsn, acme, table, key, one, ago, "archived_at")

        shown = await acted(forgetting, client, acme, "archived_checkpoints", 2)

        assert set(shown) == set(own[:2])
        assert await left(dsn, acme, table, key, "talk") == {own[2]}
        # The default agent keeps them for a year.
        assert await left(dsn, acme, table, key, "chat") == set(other)

    async def test_copies_of_a_state_go_but_the_newest(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        key, table = "snapshot_id", "session_state_snapshot"
        own = await snapshots(client, await opened(client, "talk"))
        for one, ago in zip(own, (LATE, DAYS, EARLY), strict=False):
            await aged(dsn, acme, table, key, one, ago)
        old = await snapshots(client, await opened(client, "chat"))
        for number, one in enumerate(old):
            await aged(dsn, acme, table, key, one, LATE - timedelta(hours=number))

        shown = await acted(forgetting, client, acme, "snapshots", 5)

        assert set(shown) == {*own[:2], *old[:3]}
        assert await left(dsn, acme, table, key, "talk") == set(own[2:])
        assert await left(dsn, acme, table, key, "chat") == {old[3]}
        path = f"/sessions/chat/state/snapshots/{old[3]}/restore"
        assert (await client.post(path, headers={"If-Match": "*"})).is_success

    @pytest.mark.parametrize(("ago", "steps"), [(EARLY, 0), (DAYS, 2), (LATE, 2)])
    async def test_threads_nobody_goes_on_with_keep_the_newest_of_each(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str,
        ago: timedelta, steps: int,
    ) -> None:  # fmt: skip
        parent = None
        for number in range(3):
            values = {"messages": [f"第{number}句".encode()]}
            ok(await put(client, f"c{number}", parent, agent_id="coach", values=values))
            parent = f"c{number}"
        ok(await put(client, "inner", namespace="sub", agent_id="coach"))
        for name in ("c0", "c1"):
            await aged(dsn, acme, "saver_checkpoints", "checkpoint_id", name, LATE)
        for name in ("c2", "inner"):
            await aged(dsn, acme, "saver_checkpoints", "checkpoint_id", name, ago)

        shown = await acted(forgetting, client, acme, "saver_checkpoints", steps)

        assert shown == (["trip"] if steps else [])
        kept = {"c2", "inner"} if steps else {"c0", "c1", "c2", "inner"}
        assert await left(dsn, acme, "saver_checkpoints", "checkpoint_id", "trip") == kept
        # What the steps that went alone had goes with them.
        values = await left(dsn, acme, "saver_values", "digest", "trip")
        assert len(values) == (1 if steps else 3)

    async def test_0_days_keep_all_and_a_switch_does(
        self, forgetting: Forgetting, runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await opened(client, "talk")
        [one, *_] = await archived(client, runtime, acme, "talk")
        await aged(dsn, acme, "checkpoint_archive", "checkpoint_id", one, LATE, "archived_at")
        [first, *_] = await snapshots(client, "talk")
        await aged(dsn, acme, "session_state_snapshot", "snapshot_id", first, LATE)
        steps = ["archived_checkpoints", "snapshots", "saver_checkpoints"]

        for said in (
            {"checkpoint_retention_days": 0},
            {"checkpoint_retention_days": 40, "enabled": False},
        ):
            ok(await client.patch("/agents/coach", json={"config": {"forgetting": said}}))
            assert await forgetting.run(acme.tenant_id, steps) == dict.fromkeys(steps, 0)


@pytest.mark.usefixtures("coach")
class TestMessages:
    async def read(self, dsn: str, caller: Caller, session_id: str, window_from: int) -> None:
        """All was read for memories; the window begins behind that message."""
        await execute(
            dsn,
            "UPDATE sessions SET last_extracted_seq = 100, in_context_from = $3 "
            "WHERE tenant_id = $1 AND session_id = $2",
            caller.tenant_id, session_id, window_from,
        )  # fmt: skip

    async def made(self, dsn: str, caller: Caller, session_id: str, *agos: timedelta) -> None:
        for number, ago in enumerate(agos, start=1):
            await execute(
                dsn,
                "UPDATE messages SET create_time = now() - $4::interval "
                "WHERE tenant_id = $1 AND session_id = $2 AND sequence_no = $3",
                caller.tenant_id, session_id, number, ago,
            )  # fmt: skip

    async def numbers(self, client: AsyncClient, session_id: str) -> list[int]:
        rows = await every_page(client, f"/sessions/{session_id}/messages")
        return [one["sequence_no"] for one in rows]

    async def test_they_go_once_they_are_old_enough(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await append(client, "talk", *(f"我去了第{n}个城市。" for n in range(5)), agent_id="coach")
        await self.read(dsn, acme, "talk", 5)
        await self.made(dsn, acme, "talk", LATE, DAYS, EARLY, timedelta(0), LATE)

        await acted(forgetting, client, acme, "messages", 3)

        assert await self.numbers(client, "talk") == [3, 4]

    @pytest.mark.parametrize(
        ("agos", "kept"),
        [
            # The call and its first result are old; the second result holds them all.
            ((LATE, LATE, DAYS, EARLY, LATE), [2, 3, 4]),
            ((LATE, EARLY, LATE, LATE, LATE), [2, 3, 4]),
            ((EARLY, DAYS, DAYS, DAYS, LATE), [1]),
        ],
    )
    async def test_a_call_goes_with_all_its_results_or_not_at_all(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str,
        agos: tuple[timedelta, ...], kept: list[int],
    ) -> None:  # fmt: skip
        await append(client, "talk", "六乘七?", CALL, *RESULTS, "Thanks.", agent_id="coach")
        await self.read(dsn, acme, "talk", 5)
        await self.made(dsn, acme, "talk", *agos)

        done = await forgetting.run(acme.tenant_id, ["messages"])

        assert done == {"messages": 5 - len(kept)}
        assert await forgetting.run(acme.tenant_id, ["messages"]) == {"messages": 0}
        assert await self.numbers(client, "talk") == kept

    async def test_the_request_of_the_turn_that_the_window_begins_in_stays(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        """It is before the window, and shown still."""
        steps = [{"role": "assistant", "content": f"Step {number}."} for number in range(4)]
        said = ("Hello!", steps[0], "Sort the archive, please.", *steps)
        await append(client, "talk", *said, agent_id="coach")
        await execute(
            dsn,
            "UPDATE sessions SET last_extracted_seq = 100, in_context_from = 5, opening_seq = 3 "
            "WHERE tenant_id = $1",
            acme.tenant_id,
        )
        await self.made(dsn, acme, "talk", *[LATE] * 7)

        await acted(forgetting, client, acme, "messages", 4)

        assert await self.numbers(client, "talk") == [3, 6, 7]

    async def test_the_window_is_what_it_was_and_goes_on(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await append(client, "talk", *(f"Garden {n}." for n in range(6)), agent_id="coach")
        await self.read(dsn, acme, "talk", 4)
        await self.made(dsn, acme, "talk", *[LATE] * 6)
        await append(client, "talk", "One more.", agent_id="coach")
        counters = (
            "SELECT window_messages, window_tokens, window_seq FROM sessions "
            "WHERE tenant_id = $1 AND session_id = 'talk'"
        )
        # Counted anew, for the pointer was moved by hand.
        await forgetting.run(acme.tenant_id, ["messages"])
        [before] = await execute(dsn, counters, acme.tenant_id)
        assert (before["window_messages"], before["window_seq"]) == (3, 7)

        await append(client, "talk", "And another.", agent_id="coach")

        [after] = await execute(dsn, counters, acme.tenant_id)
        assert (after["window_messages"], after["window_seq"]) == (4, 8)
        assert after["window_tokens"] > before["window_tokens"] > 0
        assert await self.numbers(client, "talk") == [5, 6, 7, 8]
