"""Appends that meet; each needs connections of its own, so commits are real."""

import asyncio
from collections.abc import Collection
from itertools import pairwise
from threading import Thread

import pytest
from httpx import AsyncClient

from app.conversation.messages.schemas import WindowTrim
from app.conversation.messages.window import Window
from app.conversation.messages.window_service import WindowService
from app.conversation.sessions.policy import WindowPolicy
from app.identity.tenants.access import Access, Principal
from app.language.llm.tokens import EstimatedTokens
from app.runtime import Runtime
from tests.support.api import append, every_page, execute, ok
from tests.support.tenants import Caller

APPENDERS = 32
ROUNDS = 3


async def test_many_appenders_leave_no_gap_and_no_double(client: AsyncClient) -> None:
    await append(client, "s1", "Begin.")

    async def appender(number: int) -> list[list[int]]:
        batches = []
        for turn in range(ROUNDS):
            size = 1 + (number + turn) % 4
            stored = await append(client, "s1", *(f"{number}/{turn}/{n}" for n in range(size)))
            batches.append([row["sequence_no"] for row in stored["messages"]])
        return batches

    answers = await asyncio.gather(*(appender(number) for number in range(APPENDERS)))

    batches = [batch for one in answers for batch in one]
    # A batch is never torn apart, and an appender's second batch follows its first.
    for batch in batches:
        assert batch == list(range(batch[0], batch[0] + len(batch)))
    for one in answers:
        assert one == sorted(one)
    rows = await every_page(client, "/sessions/s1/messages")
    total = 1 + sum(len(batch) for batch in batches)
    assert [row["sequence_no"] for row in rows] == list(range(1, total + 1))
    assert len({row["message_id"] for row in rows}) == total
    moments = [row["create_time"] for row in rows]
    assert all(earlier < later for earlier, later in pairwise(moments))
    parents = [row["parent_message_id"] for row in rows]
    assert parents == [None, *(row["message_id"] for row in rows[:-1])]
    session = ok(await client.get("/sessions/s1"))
    assert (session["last_sequence_no"], session["last_message_time"]) == (total, moments[-1])


async def test_first_appends_to_a_new_session_all_arrive(client: AsyncClient) -> None:
    answers = await asyncio.gather(
        *(append(client, "new", f"First {number}.", agent_id="a1") for number in range(8))
    )

    numbers = sorted(answer["messages"][0]["sequence_no"] for answer in answers)
    assert numbers == list(range(1, 9))
    assert len(await every_page(client, "/sessions")) == 1
    assert len(await every_page(client, "/users")) == 1
    assert len(await every_page(client, "/agents")) == 1


async def test_one_message_sent_many_times_at_once_is_stored_once(client: AsyncClient) -> None:
    message = {"role": "user", "content": "你好。", "message_id": "m1"}

    answers = await asyncio.gather(*(append(client, "s1", message) for _ in range(8)))

    assert sorted(answer["created"] for answer in answers) == [0] * 7 + [1]
    assert len({answer["messages"][0]["create_time"] for answer in answers}) == 1
    assert len(await every_page(client, "/sessions/s1/messages")) == 1


async def test_one_id_in_two_sessions_at_once_belongs_to_one(client: AsyncClient) -> None:
    for number in range(6):
        await append(client, f"s{number}", "Begin.")
    for turn in range(4):
        batch = [
            {"role": "user", "content": "A."},
            {"role": "user", "content": "B.", "message_id": f"m{turn}"},
        ]

        responses = await asyncio.gather(
            *(
                client.post(f"/sessions/s{number}/messages", json={"messages": batch})
                for number in range(6)
            )
        )

        assert sorted(response.status_code for response in responses) == [201] + [409] * 5
        losers = [response.json() for response in responses if response.status_code == 409]
        told = {(loser["code"], loser["message_id"]) for loser in losers}
        assert told == {("id_taken", f"m{turn}")}


async def test_one_request_key_sent_many_times_at_once_has_one_effect(
    client: AsyncClient,
) -> None:
    body = {"user_id": "ana", "messages": [{"role": "user", "content": "Once."}]}

    responses = await asyncio.gather(
        *(
            client.post("/sessions/s1/messages", json=body, headers={"Idempotency-Key": "k"})
            for _ in range(8)
        )
    )

    done = [response for response in responses if response.status_code == 201]
    waiting = [response for response in responses if response.status_code != 201]
    assert done
    assert len({response.text for response in done}) == 1
    for response in waiting:
        assert (response.status_code, response.json()["code"]) == (409, "request_in_progress")
        assert response.headers["Retry-After"] == "1"
    assert len(await every_page(client, "/sessions/s1/messages")) == 1


async def test_appending_and_deleting_at_once_reuses_no_number(client: AsyncClient) -> None:
    await append(client, "s1", *(f"Old {number}." for number in range(10)))

    async def drop() -> None:
        ok(await client.post("/sessions/s1/messages/delete", json={"oldest": 2}))

    said = [append(client, "s1", f"New {number}.") for number in range(10)]
    results = await asyncio.gather(*said, *(drop() for _ in range(5)))

    new = sorted(answer["messages"][0]["sequence_no"] for answer in results[:10])
    assert new == list(range(11, 21))
    left = [row["sequence_no"] for row in await every_page(client, "/sessions/s1/messages")]
    assert left == list(range(11, 21))


@pytest.mark.parametrize(("gone", "left"), [((2, 3), [1, 4, 5]), ((1,), [2, 3, 4, 5]),
                                            ((1, 2, 3, 4, 5), [])])  # fmt: skip
async def test_what_is_deleted_while_a_window_is_trimmed_is_not_shown(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller, gone: tuple[int, ...],
    left: list[int],
) -> None:  # fmt: skip
    call = {"role": "assistant", "tool_calls": [{"id": "c1"}]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "A cat."}
    wait = {"role": "assistant", "tool_calls": [{"id": "c2"}]}
    stored = await append(client, "s1", "Look", call, result, "And?", wait)
    deleting = "DELETE FROM messages WHERE tenant_id = $1 AND sequence_no = ANY($2::int8[])"

    def pick(window: Window) -> Collection[str]:
        """Everything; and meanwhile somebody deletes, on a connection of their own."""
        other = Thread(target=lambda: asyncio.run(execute(dsn, deleting, acme.tenant_id, gone)))
        other.start()
        other.join()
        return [one.message_id for one in window.messages]

    service = WindowService(
        runtime.work, EstimatedTokens(), WindowPolicy(), {"mine": lambda _: pick}, runtime.now
    )
    principal = Principal(Access(acme.tenant_id), "key", frozenset({"read"}), {})
    body = WindowTrim.model_validate({"strategy": {"name": "mine"}})

    shown = await service.trim(principal, "s1", body)

    assert [one.sequence_no for one in shown.messages] == left
    assert shown.waiting == (["c2"] if 5 in left else [])
    assert shown.starts_with_user == (left[:1] == [1])
    assert (shown.tokens > 0) == bool(left)
    assert len(stored["messages"]) == 5
