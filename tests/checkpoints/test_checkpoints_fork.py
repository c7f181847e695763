"""A fork: what its model sees, what is counted, and that nothing is said or read twice."""

import asyncio
from typing import Any

import pytest
from checkpoints_support import (
    SESSION,
    answering,
    asking,
    checkpoint,
    holding,
    put_state,
    restore,
)
from httpx import AsyncClient

from app.prompting.checkpoints.errors import ForkTooLargeError
from app.prompting.checkpoints.fork_service import ForkService
from app.prompting.checkpoints.schemas import SessionFork
from app.runtime import Runtime
from tests.support.api import append, dump, every_page, execute, fields, ok, problem, save
from tests.support.conversations import compact, converse, summaries
from tests.support.conversations import window as pressure
from tests.support.excerpts import context, excerpt_lines
from tests.support.tenants import Caller
from tests.support.working import extracted, working

FORK = f"{SESSION}/fork"


async def fork(client: AsyncClient, source: str = "s1", **body: Any) -> dict[str, Any]:
    return ok(await client.post(f"/sessions/{source}/fork", json=body), 201)


async def shown(client: AsyncClient, session_id: str) -> list[Any]:
    """What a model is sent of a conversation, with the summaries before it."""
    answer = await context(client, session_id, include={"excerpts": False})
    return [answer["prompt"], answer["messages"]]


async def said(client: AsyncClient, session_id: str) -> list[tuple[int, str, str]]:
    rows = await every_page(client, f"/sessions/{session_id}/messages")
    return [(row["sequence_no"], row["role"], row["content"]) for row in rows]


@pytest.fixture
async def session(client: AsyncClient) -> None:
    policy = {"budget_tokens": 400, "keep_messages": 4}
    body = {"session_id": "s1", "user_id": "ana", "window_policy": policy, "session_name": "Trip"}
    ok(await client.post("/sessions", json=body), 201)


class TestWhatAForkHas:
    async def test_a_fork_at_the_end_has_the_same_context_and_its_own_future(
        self, client: AsyncClient, session: None
    ) -> None:
        await converse(client, "s1", 12)
        assert (await compact(client, "s1", force=True))["compacted"]
        await put_state(client, {"goal": "Kyoto"})

        made = await fork(client, session_id="s2")

        assert await shown(client, "s2") == await shown(client, "s1")
        assert (await shown(client, "s1"))[1]
        before, after = await pressure(client, "s1"), await pressure(client, "s2")
        for name in ("messages", "tokens", "summary_tokens", "in_context_from"):
            assert after[name] == before[name], name
        assert (made["copied_messages"], made["session_name"]) == (12, "Trip")
        assert made["forked_from"] == {
            "session_id": "s1",
            "sequence_no": 12,
            "message_id": (await every_page(client, f"{SESSION}/messages"))[-1]["message_id"],
            "checkpoint_id": None,
        }
        assert ok(await client.get("/sessions/s2/state"))["state"] == {"goal": "Kyoto"}
        [next_one] = (await append(client, "s2", "Another way."))["messages"]
        assert next_one["sequence_no"] == 13
        assert len(await said(client, "s1")) == 12
        await put_state(client, {"goal": "Nara"})
        assert ok(await client.get("/sessions/s2/state"))["state"] == {"goal": "Kyoto"}

    async def test_an_earlier_message_has_the_window_and_the_state_of_that_time(
        self, client: AsyncClient, session: None
    ) -> None:
        await converse(client, "s1", 8)
        assert (await compact(client, "s1", force=True))["compacted"]
        await put_state(client, {"step": 1})
        at = (await checkpoint(client))["message_seq"]
        then = await shown(client, "s1")
        await converse(client, "s1", 6)
        await put_state(client, {"step": 2})
        assert (await compact(client, "s1", force=True))["compacted"]
        assert await shown(client, "s1") != then

        by_number = await fork(client, at_sequence_no=at)
        last = (await every_page(client, f"{SESSION}/messages"))[at - 1]["message_id"]
        by_id = await fork(client, at_message_id=last)

        for made in (by_number, by_id):
            assert await shown(client, made["session_id"]) == then
            state = ok(await client.get(f"/sessions/{made['session_id']}/state"))
            assert state["state"] == {"step": 1}
            assert made["last_sequence_no"] == at

    async def test_no_summary_tells_what_was_said_later(
        self, client: AsyncClient, session: None
    ) -> None:
        await converse(client, "s1", 12)
        assert (await compact(client, "s1", force=True))["compacted"]
        assert (await summaries(client, "s1"))[0]["to_seq"] > 3

        made = await fork(client, at_sequence_no=3)

        assert await summaries(client, made["session_id"]) == []
        assert (await pressure(client, made["session_id"]))["messages"] == 3

    async def test_a_checkpoint_brings_its_window_and_its_state(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "One.", "二。")
        await put_state(client, {"step": 1})
        made = await checkpoint(client)
        then = await shown(client, "s1")
        await append(client, "s1", "Three.")
        await put_state(client, {"step": 2})

        forked = await fork(client, checkpoint_id=made["checkpoint_id"])

        assert await shown(client, forked["session_id"]) == then
        assert forked["forked_from"]["checkpoint_id"] == made["checkpoint_id"]
        state = ok(await client.get(f"/sessions/{forked['session_id']}/state"))
        assert (state["state"], state["version"]) == ({"step": 1}, forked["state_version"])

    async def test_an_ended_session_can_be_forked_with_the_state_of_its_end(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "One.")
        await put_state(client, {"step": 1})
        ok(await client.post(f"{SESSION}/end"))

        made = await fork(client)

        assert made["status"] == "running"
        state = ok(await client.get(f"/sessions/{made['session_id']}/state"))
        assert state["state"] == {"step": 1}

    async def test_parents_and_calls_are_those_of_the_copies(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "Book it.", asking("c1", requires_approval=False))
        await append(client, "s1", answering("c1"), "Thanks.")

        made = await fork(client)

        there = await every_page(client, f"{SESSION}/messages")
        here = await every_page(client, f"/sessions/{made['session_id']}/messages")
        ids = [row["message_id"] for row in here]
        assert not {row["message_id"] for row in there} & set(ids)
        assert [row["parent_message_id"] for row in here] == [None, *ids[:-1]]
        assert [row["tool_call_id"] for row in here] == [None, None, "c1", None]
        assert [row["create_time"] for row in here] == [row["create_time"] for row in there]
        branch = await every_page(
            client, f"/sessions/{made['session_id']}/messages", branch=ids[-1]
        )
        assert len(branch) == 4

    async def test_a_fork_of_nothing_is_an_empty_session(
        self, client: AsyncClient, session: None
    ) -> None:
        made = await fork(client)

        assert (made["copied_messages"], made["last_sequence_no"]) == (0, 0)
        assert made["forked_from"]["message_id"] is None
        await append(client, made["session_id"], "One.")


class TestWhereItMayBegin:
    async def test_an_open_call_is_refused_and_its_two_sides_are_not(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "Book it.", asking("c1", "c2"), answering("c1"))

        for body in ({}, {"at_sequence_no": 2}, {"at_sequence_no": 3}):
            refused = problem(await client.post(FORK, json=body), 409, "invalid_fork_point")
            assert refused["reason"] == "open_tool_call"
            assert refused["sequence_no"] == 2
            assert "c2" in refused["tool_call_ids"]
        assert (await fork(client, at_sequence_no=1))["last_sequence_no"] == 1
        await append(client, "s1", answering("c2"))
        assert (await fork(client))["last_sequence_no"] == 4

    async def test_a_call_that_was_given_up_refuses_nothing_later(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "Book it.", asking("c1"), "Never mind.")

        assert (await fork(client))["copied_messages"] == 3

    async def test_a_message_set_aside_is_refused_and_its_checkpoint_is_not(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "One.")
        first = (await checkpoint(client))["checkpoint_id"]
        await append(client, "s1", "Two.")
        second = (await checkpoint(client))["checkpoint_id"]
        await restore(client, first)
        await append(client, "s1", "Other two.")

        refused = problem(
            await client.post(FORK, json={"at_sequence_no": 2}), 409, "invalid_fork_point"
        )
        assert refused["reason"] == "set_aside"
        left = await fork(client, checkpoint_id=second)
        assert [text for *_, text in await said(client, left["session_id"])] == ["One.", "Two."]
        here = await fork(client)
        texts = [(number, text) for number, _, text in await said(client, here["session_id"])]
        assert texts == [(1, "One."), (3, "Other two.")]

    async def test_what_is_not_there_is_not_found(self, client: AsyncClient, session: None) -> None:
        await append(client, "s1", "One.")
        await append(client, "s9", "Elsewhere.")
        elsewhere = (await every_page(client, "/sessions/s9/messages"))[0]["message_id"]

        for body, code in (
            ({"at_sequence_no": 2}, "message_not_found"),
            ({"at_message_id": elsewhere}, "message_not_found"),
            ({"checkpoint_id": "chk_none"}, "checkpoint_not_found"),
        ):
            problem(await client.post(FORK, json=body), 404, code)
        problem(await client.post("/sessions/none/fork"), 404, "session_not_found")
        both = {"at_sequence_no": 1, "checkpoint_id": "c"}
        assert fields(problem(await client.post(FORK, json=both), 422, "invalid_request"))
        problem(await client.post(FORK, json={"session_id": "s9"}), 409, "id_taken")
        problem(await client.post(FORK, json={"session_id": "s1"}), 409, "id_taken")

    @pytest.mark.parametrize(("most", "fits"), [(2, False), (3, True), (4, True)])
    async def test_so_many_messages_are_copied_and_no_more(
        self, runtime: Runtime, client: AsyncClient, acme: Caller, session: None, most: int,
        fits: bool,
    ) -> None:  # fmt: skip
        await append(client, "s1", "1", "2", "3")
        forks = ForkService(runtime.work, runtime.window_policy, most=most)
        principal = await runtime.identification.identify(acme.key)

        if fits:
            assert (await forks.fork(principal, "s1", SessionFork())).copied_messages == 3
        else:
            with pytest.raises(ForkTooLargeError):
                await forks.fork(principal, "s1", SessionFork())
            assert len(await every_page(client, "/sessions")) == 1


class TestOnce:
    async def test_a_request_sent_again_makes_no_second_fork(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "One.")
        headers = {"Idempotency-Key": "k1"}

        first = ok(await client.post(FORK, headers=headers), 201)
        again = await client.post(FORK, headers=headers)

        assert again.headers["Idempotency-Replayed"] == "true"
        assert ok(again, 201) == first
        assert len(await every_page(client, "/sessions")) == 2

    async def test_no_memory_is_stored_twice(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, session: None
    ) -> None:
        await append(
            client, "s1", "I moved to Munich in May.", {"role": "assistant", "content": "Noted."}
        )
        made = await fork(client)
        await append(client, made["session_id"], "My sister lives in Porto.")

        async with working(runtime, dsn):
            for session_id in ("s1", made["session_id"]):
                await extracted(client, session_id)
            ended = ok(await client.post(f"/sessions/{made['session_id']}/end"))
            ok(await client.post(f"/sessions/{made['session_id']}/extract", json={"wait": True}))

        assert ended["last_extracted_seq"] == 3
        texts = [row["content"] for row in await every_page(client, "/memories", user_id="ana")]
        assert sum("Munich" in text for text in texts) == 1
        assert any("Porto" in text for text in texts)
        runs = await execute(
            dsn,
            "SELECT messages FROM extraction_runs WHERE tenant_id = $1 AND session_id = $2",
            acme.tenant_id,
            made["session_id"],
        )
        # Its own message, and the end that sums it up; never one of the copies.
        assert {run["messages"] for run in runs} == {1}
        assert len(texts) == len(set(texts))

    async def test_each_text_is_found_once_and_within_the_fork_too(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "The blue notebook lies on the shelf.")
        made = await fork(client)
        again = await fork(client, made["session_id"])

        async def hits(**whose: str) -> list[str]:
            body = {"query": "blue notebook", "mode": "lexical", **whose}
            answer = ok(await client.post("/messages/search", json=body))
            return [hit["session_id"] for hit in answer["items"]]

        assert await hits(user_id="ana") == ["s1"]
        for one in ("s1", made["session_id"], again["session_id"]):
            assert await hits(session_id=one) == [one]
        ok(await client.delete("/sessions/s1", params={"confirm": "true"}))
        last = await fork(client, again["session_id"])
        copies = [made["session_id"], again["session_id"], last["session_id"]]
        [found] = await hits(user_id="ana")
        assert found in copies
        for one in copies:
            assert await hits(session_id=one) == [one]
            # Beside a fork, its own copy is the one, which it shows itself.
            answer = await context(client, one, query="Where is the blue notebook?")
            assert "blue notebook" not in "\n".join(excerpt_lines(answer))
        await append(client, "s3", "Hello.")
        answer = await context(client, "s3", query="Where is the blue notebook?")
        assert "\n".join(excerpt_lines(answer)).count("blue notebook") == 1
        for one in copies:
            assert len(await hits(user_id="ana")) == 1
            ok(await client.delete(f"/sessions/{one}", params={"confirm": "true"}))
        assert await hits(user_id="ana") == []

    async def test_a_context_of_a_fork_shows_nothing_of_what_was_said_afterwards(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "The blue notebook lies on the shelf.")
        made = await fork(client)
        await append(client, "s1", "The green notebook lies in the cellar.")
        await append(client, "s3", "The red notebook lies in the car.")

        answer = await context(client, made["session_id"], query="Where is the notebook?")

        lines = "\n".join(excerpt_lines(answer))
        assert "red notebook" in lines
        assert "green notebook" not in lines

    async def test_a_context_of_the_fork_shows_no_text_twice(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(
            client, "s1", "The blue notebook lies on the shelf.", "Water the plants on Monday."
        )
        await append(client, "s3", "The red notebook lies in the car.")
        made = await fork(client)

        answer = await context(client, made["session_id"], query="Where is the notebook?")

        lines = "\n".join(excerpt_lines(answer))
        assert "red notebook" in lines
        assert "blue notebook" not in lines
        assert sum("blue notebook" in str(one) for one in answer["messages"]) == 1
        elsewhere = await context(client, "s3", query="Where is the blue notebook?")
        assert "\n".join(excerpt_lines(elsewhere)).count("blue notebook") == 1


class TestBesideOthers:
    async def test_a_fork_waits_for_an_append_and_has_all_of_it(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, session: None
    ) -> None:
        await append(client, "s1", "1")

        async with holding(runtime, acme):
            saying = asyncio.create_task(append(client, "s1", "2", "3"))
            done, _ = await asyncio.wait([saying], timeout=0.5)
            assert not done
            forking = asyncio.create_task(fork(client))
            done, _ = await asyncio.wait([forking], timeout=0.5)
            assert not done

        await saying
        made = await forking
        assert [text for *_, text in await said(client, made["session_id"])] == ["1", "2", "3"]

    async def test_each_fork_has_whole_appends_and_counts_that_fit(
        self, client: AsyncClient, session: None
    ) -> None:
        await append(client, "s1", "begin")
        appends = [append(client, "s1", f"{number}a", f"{number}b") for number in range(6)]
        made = await asyncio.gather(*(fork(client) for _ in range(4)), *appends)

        for one in made[:4]:
            there = await said(client, one["session_id"])
            assert len(there) == one["copied_messages"] == one["last_sequence_no"]
            assert len(there) % 2 == 1
            assert one["window_messages"] == len(there)
            assert [number for number, *_ in there] == list(range(1, len(there) + 1))

    async def test_nothing_of_it_is_left_when_the_user_is_erased(
        self, client: AsyncClient, acme: Caller, dsn: str, session: None
    ) -> None:
        await append(client, "s1", "The secret garden.")
        await fork(client)
        await save(client, "She likes gardens.")

        ok(await client.delete("/users/ana", params={"confirm": "true"}))

        rows = await dump(dsn, acme.tenant_id)
        assert not rows["messages"]
        assert not rows["sessions"]
