"""Checkpoints that meet appends and deletions; each needs connections of its own."""

import asyncio

import pytest
from checkpoints_support import (
    APPROVALS,
    CHECKPOINTS,
    SESSION,
    asking,
    checkpoint,
    holding,
    restore,
    window,
)
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, dump, every_page, execute, ok, problem, tables_with
from tests.support.tenants import Caller

ROUNDS = 6


class TestRestoreWhileMessagesArrive:
    async def test_message_that_waited_for_a_restore_follows_the_checkpoint(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", "1")
        made = (await checkpoint(client))["checkpoint_id"]
        await append(client, "s1", "2")

        async with holding(runtime, acme):
            # The lock is handed on in the order in which it was asked for.
            going = asyncio.create_task(client.post(f"{CHECKPOINTS}/{made}/restore"))
            done, _ = await asyncio.wait([going], timeout=0.5)
            assert not done
            saying = asyncio.create_task(append(client, "s1", "3"))
            done, _ = await asyncio.wait([saying], timeout=0.5)
            assert not done

        ok(await going)
        [said] = (await saying)["messages"]
        assert await window(dsn, acme) == ["1", "3"]
        first = (await every_page(client, f"{SESSION}/messages"))[0]
        assert said["parent_message_id"] == first["message_id"]

    async def test_each_message_is_before_or_after_the_checkpoint(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", "begin")
        made = (await checkpoint(client))["checkpoint_id"]
        for turn in range(ROUNDS):
            texts = [f"{turn}/{number}" for number in range(8)]
            said = [append(client, "s1", text) for text in texts]

            *answers, restored = await asyncio.gather(*said, restore(client, made))

            numbers = {
                one["messages"][0]["content"]: one["messages"][0]["sequence_no"] for one in answers
            }
            # Numbers up to `last_sequence_no` were given before it.
            after = [text for text in texts if numbers[text] > restored["last_sequence_no"]]
            shown = await window(dsn, acme)
            assert shown == ["begin", *sorted(after, key=numbers.__getitem__)]
            [row] = await execute(
                dsn,
                "SELECT window_messages, window_seq, last_sequence_no FROM sessions "
                "WHERE tenant_id = $1",
                acme.tenant_id,
            )
            assert row["window_messages"] == len(shown)
            assert row["window_seq"] == row["last_sequence_no"]

    async def test_last_of_two_restores_at_once_counts(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        made = []
        for text in ("1", "2", "3"):
            await append(client, "s1", text)
            made.append((await checkpoint(client))["checkpoint_id"])
        for _ in range(ROUNDS):
            await asyncio.gather(*(restore(client, one) for one in made))

            assert await window(dsn, acme) in (["1"], ["1", "2"], ["1", "2", "3"])
        reasons = [row["reason"] for row in await every_page(client, CHECKPOINTS)]
        assert reasons.count("before_restore") == ROUNDS * len(made)


class TestLateWrites:
    async def test_none_brings_a_deleted_session_back(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", "Book it.", asking("c1"))
        made = (await checkpoint(client))["checkpoint_id"]

        async with holding(runtime, acme) as connection:
            late = [
                asyncio.create_task(request)
                for request in (
                    client.post(CHECKPOINTS, json={}),
                    client.post(f"{CHECKPOINTS}/{made}/restore"),
                    client.post(f"{APPROVALS}/c1", json={"decision": "approved"}),
                    client.delete(f"{CHECKPOINTS}/{made}"),
                )
            ]
            done, _ = await asyncio.wait(late, timeout=0.5)
            assert not done
            await connection.exec_driver_sql("DELETE FROM sessions WHERE session_id = 's1'")

        for response in await asyncio.gather(*late):
            problem(response, 404, "session_not_found")
        rows = await dump(dsn, acme.tenant_id)
        assert not rows["checkpoints"] + rows["approvals"] + rows["sessions"]

    @pytest.mark.parametrize("turn", range(ROUNDS))
    async def test_a_deletion_that_meets_them_leaves_nothing(
        self, client: AsyncClient, acme: Caller, dsn: str, turn: int
    ) -> None:
        await append(client, "s1", "Book it.", asking("c1"))
        made = (await checkpoint(client))["checkpoint_id"]

        async def delete() -> None:
            await asyncio.sleep(0.005 * turn)
            ok(await client.delete(SESSION, params={"confirm": True}))

        _, *answers = await asyncio.gather(
            delete(),
            *(client.post(CHECKPOINTS, json={}) for _ in range(4)),
            client.post(f"{CHECKPOINTS}/{made}/restore"),
            client.post(f"{APPROVALS}/c1", json={"decision": "approved"}),
            client.put(f"{SESSION}/state", json={"a": 1}, headers={"If-Match": "*"}),
        )

        assert {answer.status_code for answer in answers} <= {200, 201, 404}
        rows = await dump(dsn, acme.tenant_id)
        assert tables_with(made, rows) == []
        assert not rows["checkpoints"] + rows["approvals"] + rows["session_states"]
