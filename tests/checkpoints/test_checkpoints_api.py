"""Checkpoints through the public routes."""

import json
from typing import Any

import pytest
from checkpoints_support import (
    CHECKPOINTS,
    SESSION,
    answering,
    asking,
    checkpoint,
    put_state,
    restore,
)
from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.prompting.checkpoints.repository import AUTOMATIC_CHECKPOINTS, PERIODIC_CHECKPOINTS
from app.prompting.checkpoints.schemas import CONTENTS_BYTES
from app.runtime import Runtime
from tests.support.api import append, dump, every_page, fields, ok, problem, tables_with
from tests.support.rows import every_row, for_each
from tests.support.tenants import Caller

EMPTY = {"messages": None, "agent_state": {}, "tool_states": {}, "pending_tool_calls": []}


async def automatic(runtime: Runtime, caller: Caller, reason: Any, count: int = 1) -> list[str]:
    """Checkpoints as an append or a compaction makes them; their ids."""
    made = []
    async with runtime.database.begin(caller.tenant_id) as db:
        for _ in range(count):
            one = await runtime.checkpoint_store.checkpoint(
                db, Access(caller.tenant_id), "s1", reason=reason, creator=None
            )
            assert one is not None
            made.append(one)
    return made


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["checkpoint_id"] for row in rows]


def filled(size: int) -> dict[str, Any]:
    """Contents of so many bytes of JSON."""
    empty = len('{"agent_state":{"text":""}}')
    return {"agent_state": {"text": "x" * (size - empty)}}


@pytest.mark.usefixtures("session")
class TestMaking:
    async def test_checkpoint_holds_the_four_parts_and_where_the_session_stood(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", "One.", "Two.")
        await put_state(client, {"goal": "train"})
        contents = {
            "agent_state": {"todo": ["日期"], "step": {"n": 1}},
            "tool_states": {"browser": {"tab": 3}},
            "pending_tool_calls": [{"id": "c1", "name": "book", "arguments": {"seats": 1}}],
            "messages": [{"role": "user", "content": "kept elsewhere"}],
        }
        about = {
            "namespace": "planner", "step": -1, "source": "input", "metadata": {"run": "r1"},
        }  # fmt: skip

        made = await checkpoint(client, contents=contents, **about)

        assert made["checkpoint_id"].startswith("chk_")
        assert about.items() <= made.items()
        assert (made["message_seq"], made["in_context_from"], made["summary_ids"]) == (2, 0, [])
        assert (made["reason"], made["parent_id"], made["archived"]) == ("manual", None, False)
        assert made["size_bytes"] > len(json.dumps(contents))
        whole = ok(await client.get(f"{CHECKPOINTS}/{made['checkpoint_id']}"))
        assert whole == made | {
            "contents": contents, "state": {"goal": "train"}, "state_version": 1,
        }  # fmt: skip

    async def test_an_empty_request_keeps_an_empty_session(self, client: AsyncClient) -> None:
        made = await checkpoint(client)

        whole = ok(await client.get(f"{CHECKPOINTS}/{made['checkpoint_id']}"))
        assert (whole["contents"], whole["state"], whole["state_version"]) == (EMPTY, {}, 0)
        assert (whole["namespace"], whole["step"], whole["source"]) == ("", None, None)

    async def test_waiting_calls_are_in_a_checkpoint_by_default(self, client: AsyncClient) -> None:
        asked = asking("c1", "c2")
        await append(client, "s1", "Book it.", asked)
        await append(client, "s1", answering("c2"))

        made = await checkpoint(client, contents={"agent_state": {"a": 1}})

        whole = ok(await client.get(f"{CHECKPOINTS}/{made['checkpoint_id']}"))
        assert whole["contents"]["pending_tool_calls"] == asked["tool_calls"][:1]

    async def test_contents_are_as_large_as_they_may_be_and_no_larger(
        self, client: AsyncClient
    ) -> None:
        for size in (CONTENTS_BYTES - 1, CONTENTS_BYTES):
            made = await checkpoint(client, contents=filled(size))
            whole = ok(await client.get(f"{CHECKPOINTS}/{made['checkpoint_id']}"))
            assert whole["contents"] == EMPTY | filled(size)
        refused = await client.post(CHECKPOINTS, json={"contents": filled(CONTENTS_BYTES + 1)})

        assert fields(problem(refused, 422, "invalid_request")) == ["body.contents"]
        assert len(await every_page(client, CHECKPOINTS)) == 2

    @for_each(
        "contents",
        [
            {"agent_state": {"a": "\x00"}}, {"agent_state": {"a": "\ud800"}}, {"colour": "red"},
            {"agent_state": {"a": 2**63}}, {"pending_tool_calls": [{}] * 101}, {"messages": "a"},
            {"agent_state": None}, [], "a",
        ],
    )  # fmt: skip
    async def test_contents_that_cannot_be_stored_are_refused(
        self, client: AsyncClient, contents: Any
    ) -> None:
        response = await client.post(
            CHECKPOINTS,
            content=json.dumps({"contents": contents}),
            headers={"Content-Type": "application/json"},
        )

        [place] = fields(problem(response, 422, "invalid_request"))
        assert place.startswith("body.contents")
        assert await every_page(client, CHECKPOINTS) == []

    async def test_a_parent_is_of_the_same_session_and_namespace(self, client: AsyncClient) -> None:
        ok(await client.post("/sessions", json={"session_id": "s2", "user_id": "ana"}), 201)
        elsewhere = ok(await client.post("/sessions/s2/checkpoints", json={}), 201)
        first = await checkpoint(client, namespace="a")
        second = await checkpoint(client, namespace="a", parent_id=first["checkpoint_id"])
        assert second["parent_id"] == first["checkpoint_id"]

        for body in (
            {"namespace": "b", "parent_id": first["checkpoint_id"]},
            {"parent_id": first["checkpoint_id"]},
            {"parent_id": elsewhere["checkpoint_id"]},
            {"parent_id": "nobody"},
        ):
            response = await client.post(CHECKPOINTS, json=body)
            assert fields(problem(response, 422, "parent_not_found")) == ["body.parent_id"]

        assert len(await every_page(client, CHECKPOINTS)) == 2

    async def test_a_repeated_request_makes_one(self, client: AsyncClient) -> None:
        headers = {"Idempotency-Key": "k"}
        body = {"contents": {"agent_state": {"a": 1}}}

        first = await client.post(CHECKPOINTS, json=body, headers=headers)
        again = await client.post(CHECKPOINTS, json=body, headers=headers)

        assert first.json() == again.json()
        assert len(await every_page(client, CHECKPOINTS)) == 1

    async def test_a_session_that_takes_nothing_keeps_nothing(self, client: AsyncClient) -> None:
        made = await checkpoint(client)
        ok(await client.post(f"{SESSION}/end"))

        for path in (CHECKPOINTS, f"{CHECKPOINTS}/{made['checkpoint_id']}/restore"):
            problem(await client.post(path, json={}), 409, "session_ended")

        ok(await client.post(f"{SESSION}/reopen"))
        ok(await client.patch("/users/ana", json={"status": "disabled"}))
        problem(await client.post(CHECKPOINTS, json={}), 409, "disabled")
        assert len(await every_page(client, CHECKPOINTS)) == 1


@pytest.mark.usefixtures("session")
class TestListing:
    async def test_list_of_checkpoints_can_be_narrowed(self, client: AsyncClient) -> None:
        made = [
            (await checkpoint(client, **body))["checkpoint_id"]
            for body in (
                {"step": 0},
                {"namespace": "a", "source": "loop", "step": 1},
                {"source": "loop", "step": 2},
                {"namespace": "a", "source": "loop", "step": 2},
                {"namespace": "a|b"},
            )
        ]

        cases = [
            ({}, [4, 3, 2, 1, 0]),
            ({"namespace": "a"}, [3, 1]),
            ({"namespace": ""}, [2, 0]),
            ({"namespace": "a|b"}, [4]),
            ({"source": "loop"}, [3, 2, 1]),
            ({"step": 2}, [3, 2]),
            ({"step": 2, "namespace": "a", "source": "loop"}, [3]),
            ({"reason": "manual"}, [4, 3, 2, 1, 0]),
            ({"reason": "end"}, []),
            ({"namespace": "A"}, []),
        ]
        with every_row() as trying:
            for narrowed, expected in cases:
                with trying(**narrowed):
                    found = ids(await every_page(client, CHECKPOINTS, **narrowed))
                    assert found == [made[number] for number in expected]

    async def test_list_of_checkpoints_can_begin_before_a_checkpoint(
        self, client: AsyncClient
    ) -> None:
        made = [(await checkpoint(client))["checkpoint_id"] for _ in range(5)]

        assert ids(await every_page(client, CHECKPOINTS, before=made[3])) == made[2::-1]
        assert ids(await every_page(client, CHECKPOINTS, before=made[3], limit=2)) == made[2::-1]
        assert ids(await every_page(client, CHECKPOINTS, before=made[0])) == []
        problem(
            await client.get(CHECKPOINTS, params={"before": "nobody"}), 404, "checkpoint_not_found"
        )

    async def test_pages_hold_each_once(self, client: AsyncClient) -> None:
        made = [(await checkpoint(client))["checkpoint_id"] for _ in range(5)]

        assert ids(await every_page(client, CHECKPOINTS, limit=2)) == made[::-1]

    async def test_a_foreign_session_reads_like_a_missing_one(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        made = await checkpoint(client)
        one = f"{CHECKPOINTS}/{made['checkpoint_id']}"

        for response in (
            await stranger.get(CHECKPOINTS), await stranger.get(one), await stranger.delete(one),
            await stranger.post(CHECKPOINTS, json={}), await stranger.post(f"{one}/restore"),
        ):  # fmt: skip
            problem(response, 404, "session_not_found")

        assert ids(await every_page(client, CHECKPOINTS)) == [made["checkpoint_id"]]


@pytest.mark.usefixtures("session")
class TestDeleting:
    async def test_one_goes_for_good_and_its_children_move_up(self, client: AsyncClient) -> None:
        first = (await checkpoint(client))["checkpoint_id"]
        second = (await checkpoint(client, parent_id=first))["checkpoint_id"]
        third = (await checkpoint(client, parent_id=second))["checkpoint_id"]

        ok(await client.delete(f"{CHECKPOINTS}/{second}"), 204)

        problem(await client.get(f"{CHECKPOINTS}/{second}"), 404, "checkpoint_not_found")
        problem(await client.delete(f"{CHECKPOINTS}/{second}"), 404, "checkpoint_not_found")
        problem(await client.post(f"{CHECKPOINTS}/{second}/restore"), 404, "checkpoint_not_found")
        assert ok(await client.get(f"{CHECKPOINTS}/{third}"))["parent_id"] == first
        assert ids(await every_page(client, CHECKPOINTS)) == [third, first]

    async def test_all_go_with_their_session(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", "Book it.", asking("c1", note="blue elephants"))
        contents = {"agent_state": {"goal": "blue elephants"}}
        key = {"Idempotency-Key": "k"}
        made = ok(await client.post(CHECKPOINTS, json={"contents": contents}, headers=key), 201)
        ok(
            await client.post(
                f"{CHECKPOINTS}/{made['checkpoint_id']}/restore",
                headers={"Idempotency-Key": "k2"},
            )
        )

        ok(await client.delete(SESSION, params={"confirm": True}))

        rows = await dump(dsn, acme.tenant_id)
        assert tables_with("blue elephants", rows) == []
        assert tables_with(made["checkpoint_id"], rows) == []
        assert rows["approvals"] == []


@pytest.mark.usefixtures("session")
class TestMadeByItself:
    async def test_one_is_made_at_the_end(self, client: AsyncClient) -> None:
        await append(client, "s1", "One.")
        await put_state(client, {"goal": "train"})

        ok(await client.post(f"{SESSION}/end"))
        ok(await client.post(f"{SESSION}/end"))

        [made] = await every_page(client, CHECKPOINTS)
        assert (made["reason"], made["message_seq"]) == ("end", 1)
        whole = ok(await client.get(f"{CHECKPOINTS}/{made['checkpoint_id']}"))
        assert (whole["state"], whole["contents"]) == ({"goal": "train"}, EMPTY)
        # And it brings back what the end has dropped.
        ok(await client.post(f"{SESSION}/reopen"))
        await restore(client, made["checkpoint_id"])
        assert ok(await client.get(f"{SESSION}/state"))["state"] == {"goal": "train"}

    async def test_none_is_made_of_a_session_without_anything(self, client: AsyncClient) -> None:
        ok(await client.post(f"{SESSION}/end"))

        assert await every_page(client, CHECKPOINTS) == []

    async def test_one_is_made_after_so_many_messages(self, client: AsyncClient) -> None:
        ok(await client.patch(SESSION, json={"window_policy": {"checkpoint_every": 3}}))

        for number in range(1, 8):
            await append(client, "s1", f"{number}.")
        await append(client, "s1", *(f"{number}." for number in range(8, 14)))

        made = await every_page(client, CHECKPOINTS)
        assert [(one["reason"], one["message_seq"]) for one in made] == [
            ("periodic", 13), ("periodic", 6), ("periodic", 3),
        ]  # fmt: skip

    async def test_a_crash_costs_three_turns_by_default(self, client: AsyncClient) -> None:
        for number in range(1, 9):
            reply = {"role": "assistant", "content": f"{number}!"}
            await append(client, "s1", f"{number}.", reply)

            newest = ok(await client.get(CHECKPOINTS, params={"limit": 1}))["items"]
            kept = newest[0]["message_seq"] if newest else 0
            assert 2 * number - kept < 3 * 2

    @pytest.mark.parametrize("extra", [-1, 0, 1])
    async def test_only_the_newest_periodic_checkpoints_stay_and_push_no_other_out(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, extra: int
    ) -> None:
        await append(client, "s1", "One.")
        before = await automatic(runtime, acme, "before_compact", 1)

        made = await automatic(runtime, acme, "periodic", PERIODIC_CHECKPOINTS + extra)

        kept = made[max(extra, 0) :]
        assert ids(await every_page(client, CHECKPOINTS)) == [*kept[::-1], *before]

    async def test_only_the_newest_automatic_checkpoints_stay(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        await append(client, "s1", "One.")
        asked = (await checkpoint(client))["checkpoint_id"]
        made = await automatic(runtime, acme, "before_compact", AUTOMATIC_CHECKPOINTS)
        assert ids(await every_page(client, CHECKPOINTS)) == [*made[::-1], asked]
        followed = (await checkpoint(client, parent_id=made[0]))["checkpoint_id"]

        later = await automatic(runtime, acme, "before_compact", 2)

        # The first has a child, so it stays; the second went.
        assert ids(await every_page(client, CHECKPOINTS)) == [
            *later[::-1], followed, *made[:1:-1], made[0], asked,
        ]  # fmt: skip

    async def test_restored_checkpoint_stays(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        await append(client, "s1", "One.")
        first, second, *_ = await automatic(runtime, acme, "end", AUTOMATIC_CHECKPOINTS)

        await restore(client, first)
        ok(await client.get(f"{CHECKPOINTS}/{first}"))
        await restore(client, first)

        ok(await client.get(f"{CHECKPOINTS}/{first}"))
        problem(await client.get(f"{CHECKPOINTS}/{second}"), 404, "checkpoint_not_found")
