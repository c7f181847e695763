"""LangGraph's checkpoints while others write: two connections each."""

import asyncio

import asyncpg
import pytest
from httpx import AsyncClient

from tests.checkpoints.saver_support import content, held, listed, put, rows, write
from tests.support.api import ok, problem
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller


class Holding:
    """A connection that has begun to delete something and has not said COMMIT yet."""

    def __init__(self, connection: asyncpg.Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    async def run(self, statement: str) -> None:
        await self._connection.execute(statement, self._tenant_id)

    async def until_waited_for(self, number: int = 1) -> None:
        statement = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        async with asyncio.timeout(PATIENCE):
            while await self._connection.fetchval(statement) < number:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@pytest.fixture
async def holding(dsn: str, acme: Caller):
    connection = await asyncpg.connect(dsn)
    await connection.execute("SET ROLE kemem_owner")
    transaction = connection.transaction()
    await transaction.start()
    yield Holding(connection, acme.tenant_id), transaction
    await connection.close()


LATE = {
    "put": lambda client: put(client, "c2", "c1"),
    "write": lambda client: write(client, "c1", "late"),
}


class TestLateWrites:
    """What waited for the lock of a delete finds nothing, and brings nothing back."""

    @pytest.mark.parametrize("late", LATE)
    async def test_of_a_deleted_session(
        self, client: AsyncClient, acme: Caller, dsn: str, holding, late: str
    ) -> None:
        ok(await put(client, "c1", values={"a": [b"one"]}))
        other, transaction = holding
        await other.run("DELETE FROM sessions WHERE tenant_id = $1")

        waiting = asyncio.create_task(LATE[late](client))
        await other.until_waited_for()
        await transaction.commit()

        problem(await waiting, 404, "session_not_found")
        assert list((await rows(dsn, acme.tenant_id)).values()) == [0, 0, 0, 0]
        problem(await client.get("/sessions/trip"), 404, "session_not_found")

    @pytest.mark.parametrize("late", LATE)
    async def test_of_a_deleted_thread(
        self, client: AsyncClient, acme: Caller, dsn: str, holding, late: str
    ) -> None:
        """The session is locked by somebody else; the delete waits, and behind it the write."""
        ok(await put(client, "c1", values={"a": [b"one"]}))
        other, transaction = holding
        await other.run("SELECT FROM sessions WHERE tenant_id = $1 FOR UPDATE")

        deleting = asyncio.create_task(client.delete("/sessions/trip/saver"))
        await other.until_waited_for()
        waiting = asyncio.create_task(LATE[late](client))
        await other.until_waited_for(2)
        await transaction.commit()

        ok(await deleting, 204)
        problem(await waiting, 404, "saver_checkpoint_not_found")
        assert list((await rows(dsn, acme.tenant_id)).values()) == [0, 0, 0, 0]


class TestAtOnce:
    async def test_two_puts_to_one_thread_are_both_stored(self, client: AsyncClient) -> None:
        ok(await put(client, "c0", values={"a": [b"shared"]}))

        answers = await asyncio.gather(
            *(
                put(client, f"c1-{number}", "c0", values={"a": [b"shared", bytes([number])]})
                for number in range(8)
            )
        )

        assert [one.status_code for one in answers] == [200] * 8
        assert len(await listed(client)) == 9
        assert sorted(one["a"] for one in await held(client, limit=8)) == [
            b"shared" + bytes([number]) for number in range(8)
        ]

    async def test_two_first_puts_open_one_session(self, client: AsyncClient) -> None:
        answers = await asyncio.gather(
            *(put(client, "c0", namespace=f"n{number}") for number in range(4))
        )

        assert [one.status_code for one in answers] == [200] * 4
        assert len(await listed(client)) == 4

    async def test_a_prune_takes_no_chunk_from_under_a_put(
        self, client: AsyncClient, holding
    ) -> None:
        """The put refers to a chunk that only a pruned checkpoint has, and comes after."""
        ok(await put(client, "c1", values={"a": [b"old"]}))
        ok(await put(client, "c2", "c1", values={"a": [b"new"]}))
        other, transaction = holding
        await other.run("SELECT FROM sessions WHERE tenant_id = $1 FOR UPDATE")

        pruning = asyncio.create_task(client.post("/saver/prune", json={"session_ids": ["trip"]}))
        await other.until_waited_for()
        putting = asyncio.create_task(
            put(client, "c3", "c2", values={"a": [b"old", b"new"]}, content={})
        )
        await other.until_waited_for(2)
        await transaction.commit()

        assert ok(await pruning) == {"checkpoints": 1}
        problem(await putting, 409, "saver_content_missing")
        ok(await put(client, "c3", "c2", values={"a": [b"old", b"new"]}, content=content(b"old")))
        assert await held(client) == [{"a": b"oldnew"}, {"a": b"new"}]

    async def test_copies_in_opposite_directions_do_not_lock_for_good(
        self, client: AsyncClient
    ) -> None:
        for session in ("a", "b"):
            ok(await put(client, f"c-{session}", session=session))

        answers = await asyncio.gather(
            *(
                client.post(f"/sessions/{here}/saver/copy", json={"target_session_id": there})
                for here, there in (("a", "b"), ("b", "a")) * 4
            )
        )

        assert [one.status_code for one in answers] == [200] * 8
        assert await listed(client, "a") == await listed(client, "b") == ["c-b", "c-a"]

    @pytest.mark.parametrize("target", ["after", "zulu"])
    async def test_a_copy_that_waits_for_its_source_has_locked_nothing_of_the_user(
        self, client: AsyncClient, holding, target: str
    ) -> None:
        """An erasure locks sessions and then the user: it must get both."""
        ok(await put(client, "c1", session="middle"))
        other, transaction = holding
        await other.run("SELECT FROM sessions WHERE tenant_id = $1 FOR UPDATE")

        copying = asyncio.create_task(
            client.post("/sessions/middle/saver/copy", json={"target_session_id": target})
        )
        await other.until_waited_for()
        async with asyncio.timeout(PATIENCE):
            await other.run("SELECT FROM users WHERE tenant_id = $1 FOR UPDATE")
        await transaction.commit()

        assert ok(await copying) == {"checkpoints": 1}

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/saver/prune", {"session_ids": ["a", "b"]}),
            ("/saver/runs/delete", {"run_ids": ["r0"]}),
        ],
    )
    async def test_each_thread_is_pruned_by_itself(
        self, client: AsyncClient, holding, path: str, body
    ) -> None:
        """Somebody holds the second: the first is done and free, and stays done."""
        for session in ("a", "b"):
            ok(await put(client, "c0", session=session, metadata={"run_id": "r0"}))
            ok(await put(client, "c1", "c0", session=session, metadata={"run_id": "r1"}))
        other, transaction = holding
        held = "SELECT FROM sessions WHERE tenant_id = $1 AND session_id = 'b' FOR UPDATE"
        await other.run(held)

        headers = {"Idempotency-Key": "once"}
        pruning = asyncio.create_task(client.post(path, json=body, headers=headers))
        await other.until_waited_for()
        async with asyncio.timeout(PATIENCE):
            assert await listed(client, "a") == ["c1"]
            ok(await put(client, "c2", "c1", session="a"))
        await transaction.commit()

        assert ok(await pruning) == {"checkpoints": 2}
        assert await listed(client, "b") == ["c1"]
        # Answered again, and not done again: by now "a" has another to prune.
        assert ok(await client.post(path, json=body, headers=headers)) == {"checkpoints": 2}
        assert await listed(client, "a") == ["c2", "c1"]
