"""Whole threads of LangGraph: deleted, copied, pruned, without what runs have put."""

import json

import pytest
from httpx import AsyncClient

from tests.checkpoints.saver_support import held, listed, put, rows, write
from tests.support.api import append, execute, ok, problem
from tests.support.tenants import Caller


async def thread(client: AsyncClient, session: str = "trip", *, steps: int = 4) -> None:
    """A list that grows with each step, beside a constant; the last step has a write."""
    pieces: list[bytes] = []
    parent = None
    for number in range(steps):
        pieces.append(f"{session} message {number}".encode())
        values = {"messages": pieces} | ({} if parent else {"constant": [b"always"]})
        ok(
            await put(
                client, f"c{number}", parent, session=session, values=values,
                kept=["constant"] if parent else [],
                metadata={"step": number, "run_id": f"run-{number % 2}"},
            )
        )  # fmt: skip
        parent = f"c{number}"
    ok(await write(client, f"c{steps - 1}", "pending", session=session))


async def unreferenced(dsn: str, tenant_id: str) -> list[str]:
    """Values that no checkpoint has, and chunks that no value has."""
    found = await execute(
        dsn,
        """
        SELECT 'value' AS what FROM saver_values v WHERE tenant_id = $1 AND NOT EXISTS (
            SELECT FROM saver_checkpoints c, jsonb_each_text(c.channels) held
            WHERE c.tenant_id = v.tenant_id AND c.session_id = v.session_id
                AND held.value = encode(v.digest, 'hex'))
        UNION ALL
        SELECT 'chunk' FROM saver_chunks k WHERE tenant_id = $1 AND NOT EXISTS (
            SELECT FROM saver_values v WHERE v.tenant_id = k.tenant_id
                AND v.session_id = k.session_id AND k.digest = ANY (v.chunks))
        """,
        tenant_id,
    )
    return [row["what"] for row in found]


class TestDeleting:
    async def test_everything_of_the_thread_goes_and_its_messages_stay(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await thread(client)
        await append(client, "trip", "Hello.")

        for _ in range(2):
            ok(await client.delete("/sessions/trip/saver"), 204)

        assert list((await rows(dsn, acme.tenant_id)).values()) == [0, 0, 0, 0]
        assert await listed(client) == []
        assert ok(await client.get("/sessions/trip"))["last_sequence_no"] == 1

    async def test_late_write_restores_nothing(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await thread(client)
        ok(await client.delete("/sessions/trip/saver"), 204)

        problem(await put(client, "c4", "c3"), 404, "saver_checkpoint_not_found")
        problem(await write(client, "c3", "late"), 404, "saver_checkpoint_not_found")
        assert list((await rows(dsn, acme.tenant_id)).values()) == [0, 0, 0, 0]

    async def test_an_unknown_thread_is_none(self, client: AsyncClient) -> None:
        problem(await client.delete("/sessions/x/saver"), 404, "session_not_found")


class TestCopying:
    async def test_copy_is_complete_and_independent(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await thread(client)
        ok(await put(client, "c9", namespace="child", values={"x": [b"inner"]}))
        target = {"target_session_id": "trip-2"}

        copied = ok(await client.post("/sessions/trip/saver/copy", json=target))
        again = ok(await client.post("/sessions/trip/saver/copy", json=target))
        assert (copied, again) == ({"checkpoints": 5}, {"checkpoints": 0})
        before = ok(await client.get("/sessions/trip/saver/checkpoints"))
        ok(await client.delete("/sessions/trip/saver"), 204)

        after = ok(await client.get("/sessions/trip-2/saver/checkpoints"))
        assert json.dumps(after) == json.dumps(before).replace('"trip"', '"trip-2"')
        assert ok(await client.get("/sessions/trip-2"))["user_id"] == "ana"
        assert await unreferenced(dsn, acme.tenant_id) == []

    async def test_target_keeps_its_own_checkpoints(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await thread(client, steps=2)
        ok(await put(client, "c1", session="other", values={"own": [b"own"]}))

        copied = await client.post("/sessions/trip/saver/copy", json={"target_session_id": "other"})

        assert ok(copied) == {"checkpoints": 1}
        assert [sorted(one) for one in await held(client, "other")] == [
            ["own"], ["constant", "messages"],
        ]  # fmt: skip
        assert await unreferenced(dsn, acme.tenant_id) == []

    async def test_copy_to_another_user_is_refused(self, client: AsyncClient) -> None:
        await thread(client, steps=1)
        ok(await client.post("/sessions", json={"session_id": "bobs", "user_id": "bob"}), 201)

        refused = await client.post("/sessions/trip/saver/copy", json={"target_session_id": "bobs"})
        problem(refused, 409, "session_mismatch")
        unknown = await client.post("/sessions/x/saver/copy", json={"target_session_id": "y"})
        problem(unknown, 404, "session_not_found")
        problem(await client.get("/sessions/y"), 404, "session_not_found")

    async def test_a_thread_copied_to_itself_is_as_it_was(self, client: AsyncClient) -> None:
        await thread(client)
        target = {"target_session_id": "trip"}

        copied = ok(await client.post("/sessions/trip/saver/copy", json=target))

        assert copied == {"checkpoints": 0}
        assert len(await listed(client)) == 4


class TestPruning:
    async def test_the_newest_stays_with_its_writes_and_nothing_else(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await thread(client)
        await thread(client, "other", steps=2)

        named = {"session_ids": ["trip", "unknown", "trip"], "strategy": "keep_latest"}
        assert ok(await client.post("/saver/prune", json=named)) == {"checkpoints": 3}

        [step] = ok(await client.get("/sessions/trip/saver/checkpoints"))["items"]
        assert (step["checkpoint_id"], step["parent_id"]) == ("c3", None)
        assert [one["index"] for one in step["writes"]] == [0]
        words = b"".join(f"trip message {number}".encode() for number in range(4))
        assert await held(client) == [{"messages": words, "constant": b"always"}]
        assert len(await listed(client, "other")) == 2
        assert await unreferenced(dsn, acme.tenant_id) == []
        # And on it goes.
        ok(await put(client, "c4", "c3", kept=["messages", "constant"]))

    async def test_a_value_that_no_kept_checkpoint_has_goes(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        ok(await put(client, "c1", values={"a": [b"old"], "b": [b"shared"]}))
        ok(await put(client, "c2", "c1", values={"a": [b"new", b"shared"]}))

        ok(await client.post("/saver/prune", json={"session_ids": ["trip"]}))

        assert await rows(dsn, acme.tenant_id) == {
            "saver_checkpoints": 1, "saver_values": 1, "saver_chunks": 2, "saver_writes": 0,
        }  # fmt: skip
        assert await held(client) == [{"a": b"newshared"}]

    async def test_prune_with_delete_removes_everything(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await thread(client)

        named = {"session_ids": ["trip"], "strategy": "delete"}
        assert ok(await client.post("/saver/prune", json=named)) == {"checkpoints": 4}

        assert list((await rows(dsn, acme.tenant_id)).values()) == [0, 0, 0, 0]

    async def test_a_repeated_request_answers_the_same(self, client: AsyncClient) -> None:
        await thread(client)
        named = {"session_ids": ["trip"]}
        headers = {"Idempotency-Key": "once"}

        answers = [
            ok(await client.post("/saver/prune", json=named, headers=headers)) for _ in range(2)
        ]

        assert answers == [{"checkpoints": 3}] * 2

    async def test_checkpoints_a_delta_channel_is_rebuilt_from_stay(
        self, client: AsyncClient
    ) -> None:
        """LangGraph's own saver refuses such a thread; a naive one empties the channel."""
        parent = None
        for number in range(6):
            counters = {"log": [number - 2, number - 2]} if number > 2 else {}
            values = {"log": [b"snapshot"]} if number == 2 else {}
            ok(
                await put(
                    client, f"c{number}", parent, values=values,
                    metadata={"counters_since_delta_snapshot": counters},
                )
            )  # fmt: skip
            parent = f"c{number}"

        ok(await client.post("/saver/prune", json={"session_ids": ["trip"]}))

        assert await listed(client) == ["c5", "c4", "c3", "c2"]

    @pytest.mark.parametrize(("count", "status"), [(999, 200), (1000, 200), (1001, 422)])
    async def test_a_request_names_at_most_a_thousand(
        self, client: AsyncClient, count: int, status: int
    ) -> None:
        named = {"session_ids": [f"s{number}" for number in range(count)]}

        assert (await client.post("/saver/prune", json=named)).status_code == status


class TestRuns:
    async def test_checkpoints_of_a_run_are_deleted_in_every_thread(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await thread(client)
        await thread(client, "other", steps=2)

        gone = ok(await client.post("/saver/runs/delete", json={"run_ids": ["run-1", "unknown"]}))

        assert gone == {"checkpoints": 3}
        assert await listed(client) == ["c2", "c0"]
        assert await listed(client, "other") == ["c0"]
        [newest, oldest] = ok(await client.get("/sessions/trip/saver/checkpoints"))["items"]
        assert (newest["parent_id"], oldest["parent_id"]) == (None, None)
        assert (await rows(dsn, acme.tenant_id))["saver_writes"] == 0
        assert await unreferenced(dsn, acme.tenant_id) == []

    async def test_a_run_id_too_long_to_delete_by_is_kept_with_the_metadata(
        self, client: AsyncClient
    ) -> None:
        for number, length in enumerate((255, 256)):
            ok(await put(client, f"c{number}", metadata={"run_id": "r" * length}))

        [long, short] = ok(await client.get("/sessions/trip/saver/checkpoints"))["items"]

        assert (len(short["run_id"]), long["run_id"]) == (255, None)
        assert len(long["metadata"]["run_id"]) == 256
