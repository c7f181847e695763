"""Calls of tools that wait for a human, and what humans say."""

import asyncio
from typing import Any

import pytest
from checkpoints_support import APPROVALS, SESSION, answering, asking, checkpoint
from httpx import AsyncClient

from app.prompting.checkpoints.approval_repository import LISTED
from app.prompting.checkpoints.archive_service import CheckpointArchiving
from app.runtime import Runtime
from tests.support.api import append, dump, every_page, execute, ok, problem, tables_with
from tests.support.tenants import Caller

APPROVED = {"decision": "approved"}


async def waiting(client: AsyncClient) -> list[str]:
    """Ids of the calls that wait, oldest first."""
    rows = await every_page(client, APPROVALS, status="pending")
    return [row["tool_call_id"] for row in reversed(rows)]


async def decide(client: AsyncClient, call_id: str = "c1", **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = ok(await client.post(f"{APPROVALS}/{call_id}", json=APPROVED | body))
    return answer


class TestAsking:
    async def test_calls_of_a_marked_message_wait(self, client: AsyncClient) -> None:
        asked = asking("c1", "c2")
        [_, message] = (await append(client, "s1", "Book it.", asked))["messages"]

        rows = await every_page(client, APPROVALS)

        assert [row["tool_call_id"] for row in rows] == ["c2", "c1"]
        assert rows[1]["approval_id"].startswith("apr_")
        assert (rows[1]["status"], rows[1]["answered"]) == ("pending", False)
        assert rows[1]["call"] == asked["tool_calls"][0]
        assert (rows[1]["message_id"], rows[1]["sequence_no"]) == (message["message_id"], 2)
        assert ok(await client.get(f"{APPROVALS}/c1")) == rows[1]

    @pytest.mark.parametrize(
        ("mark", "expected"),
        [
            (True, ["c1", "c2"]), (["c2"], ["c2"]), (["c3", 1, None], []), ([], []), (False, []),
            (None, []), ("c1", []), (1, []), ({"c1": True}, []),
        ],
    )  # fmt: skip
    async def test_the_mark_says_which(
        self, client: AsyncClient, mark: Any, expected: list[str]
    ) -> None:
        await append(client, "s1", "Book it.", asking("c1", "c2", requires_approval=mark))

        assert await waiting(client) == expected

    async def test_a_repeated_append_asks_once(self, client: AsyncClient) -> None:
        message = asking("c1") | {"message_id": "m1"}
        await append(client, "s1", message)
        await decide(client)

        await append(client, "s1", message)

        assert [row["status"] for row in await every_page(client, APPROVALS)] == ["approved"]

    async def test_the_policy_says_for_how_long(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", asking("c1"))
        ok(await client.patch(SESSION, json={"window_policy": {"approval_hours": 2}}))
        await append(client, "s1", asking("c2"))

        rows = await execute(
            dsn,
            "SELECT extract(epoch FROM expires_at - create_time)::int / 3600 AS hours "
            "FROM approvals WHERE tenant_id = $1 ORDER BY tool_call_id",
            acme.tenant_id,
        )

        assert [row["hours"] for row in rows] == [24, 2]

    @pytest.mark.parametrize("length", [254, 255, 256])
    async def test_a_call_that_no_message_can_answer_is_not_waited_for(
        self, client: AsyncClient, length: int
    ) -> None:
        await append(client, "s1", asking("c" * length))

        assert len(await waiting(client)) == (length <= 255)

    async def test_the_largest_batch_is_asked_about_altogether(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        batch = [asking(*(f"{message}/{call}" for call in range(50))) for message in range(100)]

        await append(client, "s1", *batch)

        assert len((await dump(dsn, acme.tenant_id))["approvals"]) == 5000

    @pytest.mark.usefixtures("session")
    async def test_calls_in_a_checkpoint_wait_too(self, client: AsyncClient) -> None:
        calls = [{"id": "c1", "name": "书"}, {"name": "no id"}, {"id": 7}, {"id": ""}, {"id": "c2"}]

        await checkpoint(client, contents={"pending_tool_calls": calls})
        await decide(client, "c1")
        await checkpoint(client, contents={"pending_tool_calls": calls})

        assert await waiting(client) == ["c2"]
        row = ok(await client.get(f"{APPROVALS}/c1"))
        assert (row["status"], row["message_id"], row["call"]) == ("approved", None, calls[0])

    async def test_an_id_with_a_slash_is_found(self, client: AsyncClient) -> None:
        await append(client, "s1", asking("call/1"))

        assert (await decide(client, "call/1"))["status"] == "approved"
        assert (await decide(client, "call%2F1"))["status"] == "approved"

    async def test_unmarked_call_has_no_approval(self, client: AsyncClient) -> None:
        await append(client, "s1", asking("c1", requires_approval=False))

        problem(await client.get(f"{APPROVALS}/c1"), 404, "approval_not_found")
        problem(await client.post(f"{APPROVALS}/c1", json=APPROVED), 404, "approval_not_found")


class TestDeciding:
    @pytest.mark.parametrize(
        "body",
        [
            {"decision": "approved"},
            {"decision": "rejected", "comment": "太贵了。"},
            {"decision": "modified", "arguments": {"seats": 2}, "comment": "Two."},
            {"decision": "timeout"},
        ],
    )
    async def test_decision_is_stored_with_its_actor(
        self, client: AsyncClient, acme: Caller, body: dict[str, Any]
    ) -> None:
        await append(client, "s1", asking("c1"))

        decided = await decide(client, **body)

        assert decided["status"] == body["decision"]
        for name in ("arguments", "comment"):
            assert decided[name] == body.get(name)
        assert decided["actor"] == acme.key_id
        assert decided["decided_at"].endswith("Z")
        assert ok(await client.get(f"{APPROVALS}/c1")) == decided
        assert await waiting(client) == []

    async def test_the_same_again_is_the_same(self, client: AsyncClient) -> None:
        await append(client, "s1", asking("c1"))
        body = {"decision": "modified", "arguments": {"seats": 2}, "comment": "Two."}
        first = await decide(client, **body)

        assert await decide(client, **body) == first

        for other in (
            APPROVED,
            {"decision": "timeout"},
            body | {"arguments": {"seats": 3}},
            body | {"arguments": {"seats": 2.0}},
            {"decision": "modified", "arguments": {"seats": 2}},
        ):
            response = await client.post(f"{APPROVALS}/c1", json=other)
            assert problem(response, 409, "approval_decided")["decision"] == "modified"
        assert ok(await client.get(f"{APPROVALS}/c1")) == first

    @pytest.mark.parametrize(
        "body",
        [
            {}, {"decision": "pending"}, {"decision": "yes"}, {"decision": "modified"},
            {"decision": "approved", "arguments": {}}, {"decision": "rejected", "comment": ""},
            {"decision": "rejected", "comment": "x" * 2001},
            {"decision": "rejected", "comment": "\x00"},
        ],
    )  # fmt: skip
    async def test_invalid_decision_is_refused(
        self, client: AsyncClient, body: dict[str, Any]
    ) -> None:
        await append(client, "s1", asking("c1"))

        problem(await client.post(f"{APPROVALS}/c1", json=body), 422, "invalid_request")

        assert await waiting(client) == ["c1"]

    async def test_first_of_two_decisions_counts(self, client: AsyncClient) -> None:
        for turn in range(5):
            await append(client, "s1", asking(f"c{turn}"))
            bodies = [{"decision": "approved"}, {"decision": "rejected"}] * 4

            answers = await asyncio.gather(
                *(client.post(f"{APPROVALS}/c{turn}", json=body) for body in bodies)
            )

            # Whoever says the same as the winner is told that it is so.
            assert sorted(answer.status_code for answer in answers) == [200] * 4 + [409] * 4
            won = {answer.json()["status"] for answer in answers if answer.status_code == 200}
            assert won == {ok(await client.get(f"{APPROVALS}/c{turn}"))["status"]}

    async def test_a_call_that_was_answered_is_not_decided(self, client: AsyncClient) -> None:
        await append(client, "s1", asking("c1", "c2"))
        await append(client, "s1", answering("c1"))

        response = await client.post(f"{APPROVALS}/c1", json=APPROVED)

        problem(response, 409, "call_answered")
        assert await waiting(client) == ["c2"]
        row = ok(await client.get(f"{APPROVALS}/c1"))
        assert (row["status"], row["answered"]) == ("pending", True)

    async def test_a_decided_call_is_answered_as_usual(self, client: AsyncClient) -> None:
        await append(client, "s1", asking("c1"))
        first = await decide(client)

        await append(client, "s1", answering("c1"))

        assert ok(await client.get(f"{APPROVALS}/c1")) == first | {"answered": True}
        assert await decide(client) == first | {"answered": True}

    async def test_an_id_that_comes_again_is_asked_about_again(self, client: AsyncClient) -> None:
        await append(client, "s1", asking("c1"))
        await decide(client)
        await append(client, "s1", answering("c1"), asking("c1"))

        assert await waiting(client) == ["c1"]
        assert (await decide(client, decision="rejected"))["status"] == "rejected"
        assert [row["status"] for row in await every_page(client, APPROVALS)] == [
            "rejected", "approved",
        ]  # fmt: skip

    async def test_an_ended_session_takes_no_decision(self, client: AsyncClient) -> None:
        await append(client, "s1", asking("c1"))
        ok(await client.post(f"{SESSION}/end"))

        problem(await client.post(f"{APPROVALS}/c1", json=APPROVED), 409, "session_ended")

    async def test_a_stranger_sees_and_decides_nothing(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await append(client, "s1", asking("c1"))

        for response in (
            await stranger.get(APPROVALS),
            await stranger.get(f"{APPROVALS}/c1"),
            await stranger.post(f"{APPROVALS}/c1", json=APPROVED),
        ):
            problem(response, 404, "session_not_found")
        assert await waiting(client) == ["c1"]


class TestInCheckpoints:
    @pytest.mark.parametrize("count", [LISTED - 1, LISTED, LISTED + 1])
    async def test_checkpoint_lists_a_limited_number_of_newest_calls(
        self, client: AsyncClient, count: int
    ) -> None:
        """A caller cannot send more of them either."""
        calls = [f"c{number}" for number in range(count)]
        batches = [calls[at : at + 50] for at in range(0, count, 50)]
        await append(client, "s1", "Book.", *(asking(*batch) for batch in batches))

        made = await checkpoint(client)

        kept = ok(await client.get(f"{SESSION}/checkpoints/{made['checkpoint_id']}"))
        told = [call["id"] for call in kept["contents"]["pending_tool_calls"]]
        assert len(told) == min(count, LISTED)
        assert set(told) <= set(calls)
        assert set(told) >= set(calls[100:])


class TestTimeRunsOut:
    @pytest.mark.parametrize(
        ("seconds", "status"), [(5, "pending"), (0, "timeout"), (-5, "timeout")]
    )
    async def test_expired_approval_says_so_at_once(
        self, client: AsyncClient, acme: Caller, dsn: str, seconds: int, status: str
    ) -> None:
        await append(client, "s1", asking("c1"))
        await self.expire_in(dsn, acme, seconds)

        [row] = await every_page(client, APPROVALS)

        assert row["status"] == status
        assert await every_page(client, APPROVALS, status=status) == [row]
        other = {"pending": "timeout", "timeout": "pending"}[status]
        assert await every_page(client, APPROVALS, status=other) == []
        assert ok(await client.get(f"{APPROVALS}/c1")) == row

    async def expire_in(self, dsn: str, caller: Caller, seconds: int) -> None:
        await execute(
            dsn,
            "UPDATE approvals SET expires_at = now() + make_interval(secs => $2) "
            "WHERE tenant_id = $1",
            caller.tenant_id,
            float(seconds),
        )

    async def test_expired_approval_is_too_late_to_decide_but_not_to_give_up(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", asking("c1"))
        await self.expire_in(dsn, acme, -1)

        late = await client.post(f"{APPROVALS}/c1", json=APPROVED)

        assert problem(late, 409, "approval_decided")["decision"] == "timeout"
        assert (await decide(client, decision="timeout"))["status"] == "timeout"
        # And the call is answered as any other.
        await append(client, "s1", answering("c1"))
        assert ok(await client.get(f"{APPROVALS}/c1"))["answered"] is True

    async def test_housekeeping_stores_the_expiry(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", asking("c1", "c2", "c3"))
        await decide(client, "c3")
        await self.expire_in(dsn, acme, -1)
        await append(client, "s1", asking("c4"))
        before = await every_page(client, APPROVALS)
        archiving = CheckpointArchiving(runtime.database, None)
        due = {"checkpoints_archived": 0, "approvals_expired": 2, "saver_parts_removed": 0}

        assert await archiving.due(acme.tenant_id) == due
        assert await every_page(client, APPROVALS) == before
        assert await archiving.run(acme.tenant_id) == due
        assert await archiving.run(acme.tenant_id) == due | {"approvals_expired": 0}

        rows = {row["tool_call_id"]: row for row in await every_page(client, APPROVALS)}
        assert {name: row["status"] for name, row in rows.items()} == {
            "c1": "timeout", "c2": "timeout", "c3": "approved", "c4": "pending",
        }  # fmt: skip
        assert rows["c1"]["decided_at"] == rows["c1"]["expires_at"]
        assert rows["c1"]["actor"] is None

    async def test_decision_during_housekeeping_does_not_undo_the_expiry(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        await append(client, "s1", asking("c1"))

        async with runtime.database.begin(acme.tenant_id) as db:
            connection = await db.connection()
            await connection.exec_driver_sql("UPDATE approvals SET status = 'timeout'")
            deciding = asyncio.create_task(client.post(f"{APPROVALS}/c1", json=APPROVED))
            done, _ = await asyncio.wait([deciding], timeout=0.5)
            assert not done

        problem(await deciding, 409, "approval_decided")
        assert ok(await client.get(f"{APPROVALS}/c1"))["status"] == "timeout"


class TestLettingGo:
    async def test_approval_goes_with_its_message(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        asked = asking("c1") | {"message_id": "m1"}
        asked["tool_calls"][0]["arguments"] = {"to": "blue elephants"}
        await append(client, "s1", "Book it.", asked, asking("c2"))
        await decide(client, comment="blue elephants are fine")

        ok(await client.delete(f"{SESSION}/messages/m1"))

        assert tables_with("blue elephants", await dump(dsn, acme.tenant_id)) == []
        assert await waiting(client) == ["c2"]
        ok(await client.delete(f"{SESSION}/messages", params={"confirm": True}))
        assert await every_page(client, APPROVALS) == []

    async def test_pages_hold_each_once(self, client: AsyncClient) -> None:
        for turn in range(3):
            await append(client, "s1", asking(f"a{turn}", f"b{turn}"))

        rows = await every_page(client, APPROVALS, limit=2)

        assert [row["tool_call_id"] for row in rows] == ["b2", "a2", "b1", "a1", "b0", "a0"]
