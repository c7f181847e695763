"""Going back to a checkpoint: what the model sees then, and that nothing is lost."""

import pytest
from checkpoints_support import (
    APPROVALS,
    CHECKPOINTS,
    SESSION,
    answering,
    asking,
    checkpoint,
    put_state,
    restore,
    window,
)
from httpx import AsyncClient

from tests.support.api import append, every_page, execute, ok, problem
from tests.support.tenants import Caller

MESSAGES = f"{SESSION}/messages"

SUMMARY = """INSERT INTO session_summaries (tenant_id, summary_id, session_id, level, from_seq,
    to_seq, content, tokens, evicted_messages, evicted_tokens, model, reason)
    VALUES ($1, $2, 's1', 0, 1, 1, 'S', $3, 1, 1, 'm', 'test')"""
EVICT = """UPDATE sessions SET in_context_from = $2, summary_ids = $3, summary_tokens = $4
    WHERE tenant_id = $1 AND session_id = 's1'"""


async def test_the_window_goes_back_and_nothing_is_deleted(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await append(client, "s1", "One.", "二。")
    made = await checkpoint(client)
    await append(client, "s1", "Three.", "Four.")

    restored = await restore(client, made["checkpoint_id"])

    assert await window(dsn, acme) == ["One.", "二。"]
    assert (restored["message_seq"], restored["last_sequence_no"]) == (2, 4)
    assert restored["window_messages"] == 2
    assert [row["content"] for row in await every_page(client, MESSAGES)] == [
        "One.", "二。", "Three.", "Four.",
    ]  # fmt: skip


async def test_next_message_follows_the_restored_checkpoint(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    first = await append(client, "s1", "One.", "Two.")
    made = await checkpoint(client)
    await append(client, "s1", "Three.")

    await restore(client, made["checkpoint_id"])
    [said, more] = (await append(client, "s1", "Other three.", "Other four."))["messages"]

    assert (said["sequence_no"], more["sequence_no"]) == (4, 5)
    assert said["parent_message_id"] == first["messages"][1]["message_id"]
    assert more["parent_message_id"] == said["message_id"]
    assert await window(dsn, acme) == ["One.", "Two.", "Other three.", "Other four."]
    branch = await every_page(client, MESSAGES, branch=more["message_id"])
    assert [row["content"] for row in branch] == ["One.", "Two.", "Other three.", "Other four."]


async def test_restoring_an_older_and_then_a_newer_checkpoint_shows_the_newer_window(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await append(client, "s1", "1")
    older = (await checkpoint(client))["checkpoint_id"]
    await append(client, "s1", "2")
    newer = (await checkpoint(client))["checkpoint_id"]
    await append(client, "s1", "3")

    back = await restore(client, older)
    await append(client, "s1", "4")
    assert await window(dsn, acme) == ["1", "4"]
    branched = (await checkpoint(client))["checkpoint_id"]

    forth = await restore(client, newer)
    assert await window(dsn, acme) == ["1", "2"]
    await append(client, "s1", "5")
    assert await window(dsn, acme) == ["1", "2", "5"]
    await restore(client, branched)
    assert await window(dsn, acme) == ["1", "4"]
    # Each restore has left a way back to how it stood before.
    await restore(client, back["before_restore_id"])
    assert await window(dsn, acme) == ["1", "2", "3"]
    await restore(client, forth["before_restore_id"])
    assert await window(dsn, acme) == ["1", "4"]


async def test_counters_are_those_of_the_window(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await append(client, "s1", "One is a short sentence.")
    made = (await checkpoint(client))["checkpoint_id"]
    counters = "SELECT window_tokens, window_messages FROM sessions WHERE tenant_id = $1"
    [before] = await execute(dsn, counters, acme.tenant_id)
    await append(client, "s1", "Two is a sentence that is longer than the first one.")

    restored = await restore(client, made)

    [after] = await execute(dsn, counters, acme.tenant_id)
    assert tuple(before) == tuple(after)
    assert (restored["window_tokens"], restored["window_messages"]) == tuple(after)
    assert after["window_tokens"] > 0
    await append(client, "s1", "Three.")
    [later] = await execute(dsn, counters, acme.tenant_id)
    assert later["window_messages"] == 2


async def test_pointer_and_summaries_go_back(client: AsyncClient, acme: Caller, dsn: str) -> None:
    await append(client, "s1", "1", "2", "3", "4")
    for name, tokens in (("sum_1", 10), ("sum_2", 20), ("sum_3", 40)):
        await execute(dsn, SUMMARY, acme.tenant_id, f"{name}{acme.tenant_id[-8:]}", tokens)
    names = [f"sum_{number}{acme.tenant_id[-8:]}" for number in (2, 1, 3)]
    await execute(dsn, EVICT, acme.tenant_id, 1, names[:2], 30)
    made = (await checkpoint(client))["checkpoint_id"]
    await execute(dsn, EVICT, acme.tenant_id, 3, names[2:], 40)

    restored = await restore(client, made)

    assert (restored["in_context_from"], restored["summary_ids"]) == (1, names[:2])
    [row] = await execute(
        dsn, "SELECT summary_tokens FROM sessions WHERE tenant_id = $1", acme.tenant_id
    )
    assert row["summary_tokens"] == 30
    assert await window(dsn, acme) == ["2", "3", "4"]
    # A summary that is gone since is not pointed at.
    await execute(dsn, "DELETE FROM session_summaries WHERE summary_id = $1", names[0])
    assert (await restore(client, made))["summary_ids"] == names[1:2]


async def test_the_working_state_goes_back_and_its_version_forth(client: AsyncClient) -> None:
    await append(client, "s1", "1")
    await put_state(client, {"goal": "train"})
    made = (await checkpoint(client))["checkpoint_id"]
    await put_state(client, {"goal": "plane", "seats": 2})

    restored = await restore(client, made)

    state = ok(await client.get(f"{SESSION}/state"))
    assert (state["state"], state["version"]) == ({"goal": "train"}, 3)
    assert restored["state_version"] == 3
    await restore(client, restored["before_restore_id"])
    assert ok(await client.get(f"{SESSION}/state"))["state"] == {"goal": "plane", "seats": 2}


async def test_deleted_messages_stay_deleted(client: AsyncClient, acme: Caller, dsn: str) -> None:
    said = await append(client, "s1", "1", "2", "3")
    made = (await checkpoint(client))["checkpoint_id"]
    await append(client, "s1", "4")
    ok(await client.delete(f"{MESSAGES}/{said['messages'][1]['message_id']}"))

    restored = await restore(client, made)

    assert await window(dsn, acme) == ["1", "3"]
    assert restored["window_messages"] == 2


async def test_a_session_of_a_caller_that_keeps_messages_elsewhere_goes_back_too(
    client: AsyncClient,
) -> None:
    ok(await client.post("/sessions", json={"session_id": "s1", "user_id": "ana"}), 201)
    contents = {"messages": [{"role": "user", "content": "你好"}], "agent_state": {"n": 1}}
    made = (await checkpoint(client, contents=contents))["checkpoint_id"]

    restored = await restore(client, made)

    assert (restored["message_seq"], restored["window_messages"]) == (0, 0)
    whole = ok(await client.get(f"{CHECKPOINTS}/{made}"))
    assert contents.items() <= whole["contents"].items()


async def test_a_call_answered_on_the_other_branch_waits_again(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await append(client, "s1", "Book it.", asking("c1"))
    made = (await checkpoint(client))["checkpoint_id"]
    await append(client, "s1", answering("c1"), "Thanks.")
    assert await every_page(client, APPROVALS, status="pending") == []

    await restore(client, made)

    [waiting] = await every_page(client, APPROVALS, status="pending")
    assert (waiting["tool_call_id"], waiting["answered"]) == ("c1", False)
    await append(client, "s1", answering("c1"))
    assert (await window(dsn, acme))[-1] == "Done."
    assert await every_page(client, APPROVALS, status="pending") == []
    again = await client.post(MESSAGES, json={"messages": [answering("c1")]})
    problem(again, 422, "unknown_tool_call")


async def test_a_call_of_the_other_branch_is_not_asked_about(client: AsyncClient) -> None:
    await append(client, "s1", "Book it.")
    made = (await checkpoint(client))["checkpoint_id"]
    await append(client, "s1", asking("c1"))

    back = await restore(client, made)

    assert await every_page(client, APPROVALS) == []
    body = {"decision": "approved"}
    problem(await client.post(f"{APPROVALS}/c1", json=body), 404, "approval_not_found")
    await restore(client, back["before_restore_id"])
    assert ok(await client.post(f"{APPROVALS}/c1", json=body))["status"] == "approved"


async def test_a_message_of_the_other_branch_is_not_taken_for_said(client: AsyncClient) -> None:
    await append(client, "s1", "1")
    made = (await checkpoint(client))["checkpoint_id"]
    message = {"role": "user", "content": "2", "message_id": "m2"}
    await append(client, "s1", message)
    await restore(client, made)

    again = await client.post(MESSAGES, json={"messages": [message]})

    problem(again, 409, "message_set_aside")


async def test_a_repeated_request_goes_back_once(client: AsyncClient) -> None:
    await append(client, "s1", "1")
    made = (await checkpoint(client))["checkpoint_id"]
    await append(client, "s1", "2")
    headers = {"Idempotency-Key": "k"}

    first = await client.post(f"{CHECKPOINTS}/{made}/restore", headers=headers)
    await append(client, "s1", "3")
    again = await client.post(f"{CHECKPOINTS}/{made}/restore", headers=headers)

    assert first.json() == again.json()
    assert len(await every_page(client, CHECKPOINTS)) == 2


@pytest.mark.usefixtures("session")
async def test_checkpoint_of_another_session_is_not_found(client: AsyncClient) -> None:
    ok(await client.post("/sessions", json={"session_id": "s2", "user_id": "ana"}), 201)
    other = ok(await client.post("/sessions/s2/checkpoints", json={}), 201)["checkpoint_id"]

    for path in (f"{CHECKPOINTS}/{other}", f"{CHECKPOINTS}/nobody"):
        problem(await client.get(path), 404, "checkpoint_not_found")
        problem(await client.post(f"{path}/restore"), 404, "checkpoint_not_found")
        problem(await client.delete(path), 404, "checkpoint_not_found")
