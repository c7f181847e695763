"""What goes to the model, and where an agent stands, by the client against the whole service."""

import pytest

from kemem import AsyncMemory, ConflictError, NotFoundError, UnprocessableError

TURNS = [
    message
    for number in range(12)
    for message in (
        {"role": "user", "content": f"Question {number}: how far is it to town {number}?"},
        {"role": "assistant", "content": f"It is {number} kilometres to town {number}."},
    )
]


@pytest.fixture
async def memory(memory_of_acme: AsyncMemory) -> AsyncMemory:
    """A client, with a session s1 of 24 messages."""
    await memory_of_acme.append("s1", TURNS, user_id="ana")
    return memory_of_acme


async def test_append_returns_the_pressure_of_the_window(memory: AsyncMemory) -> None:
    appended = await memory.append("s1", "Thanks.", usage={"input_tokens": 900})

    assert appended.pressure is not None
    assert (appended.pressure.level, appended.pressure.notice) == ("ok", None)
    window = await memory.window("s1")
    assert window.messages == 25
    assert window.pressure.tokens == appended.pressure.tokens > 0
    assert window.policy.budget_tokens == window.pressure.budget_tokens
    assert window.token_scale >= 1


async def test_context_is_ready_for_a_model(memory: AsyncMemory) -> None:
    await memory.add("She walks wherever she can.", user_id="ana", infer=False)

    context = await memory.context(
        "s1",
        "How does she get to town?",
        500,
        system_prompt="You help {{ company }}.",
        context={"company": "Acme"},
        render="anthropic",
    )

    assert context.prompt.startswith("You help Acme.")
    assert "She walks wherever she can." in str(context)
    assert context.messages[0]["role"] == "user"
    assert [one.part for one in context.used] == ["memories"]
    assert context.memory_tokens <= 500
    assert len(context.content_sha256) == 64
    assert context.query.source == "request"
    with pytest.raises(UnprocessableError):
        await memory.context("s1", system_prompt="You help {{ nobody }}.")
    with pytest.raises(NotFoundError):
        await memory.context("s2")


async def test_window_is_trimmed_for_one_call(memory: AsyncMemory) -> None:
    trimmed = await memory.trim("s1", {"name": "last_messages", "count": 4})

    assert [one.sequence_no for one in trimmed.messages] == [21, 22, 23, 24]
    assert (trimmed.starts_with_user, trimmed.fits, trimmed.left_out) == (True, True, 20)
    assert (await memory.trim("s1", "last_tokens", 60)).tokens <= 60
    assert (await memory.window("s1")).messages == 24
    with pytest.raises(UnprocessableError):
        await memory.trim("s1", "newest_first")


async def test_session_is_summarised(memory: AsyncMemory) -> None:
    planned = await memory.summarize("s1", force=True, dry_run=True, keep_messages=4)
    assert (planned.compacted, planned.why_not) == (False, "dry_run")
    assert planned.evicted is not None

    done = await memory.summarize("s1", force=True, keep_messages=4, reason="tidy")

    assert done.compacted
    assert done.summary is not None
    assert done.evicted == planned.evicted
    assert done.pressure_after.tokens < done.pressure_before.tokens
    [listed] = await memory.summaries("s1")
    assert listed.in_context
    assert (await memory.summary("s1", listed.summary_id)).content == done.summary.content
    assert (await memory.context("s1")).summary
    assert len(await memory.messages("s1", None)) == 24


async def test_working_state_is_stored_changed_and_restored(memory: AsyncMemory) -> None:
    first = await memory.set_state("s1", {"goal": "Rome", "todo": ["dates"]}, version=0)
    second = await memory.update_state("s1", {"goal": None, "seats": 2}, version=first.version)
    assert second.state == {"todo": ["dates"], "seats": 2}
    with pytest.raises(ConflictError) as stale:
        await memory.update_state("s1", {"seats": 3}, version=first.version)
    assert stale.value.code == "version_conflict"

    copy = await memory.snapshot("s1")
    together = await memory.append(
        "s1", "Three seats, please.", state={"seats": 3}, state_version=second.version
    )
    assert together.state_version == second.version + 1
    assert (await memory.state("s1")).state["seats"] == 3

    kept = await memory.get_snapshot("s1", copy.snapshot_id)
    assert kept.state == second.state
    restored = await memory.restore_snapshot("s1", copy.snapshot_id)
    assert restored.state == second.state
    assert copy.snapshot_id in {one.snapshot_id for one in await memory.snapshots("s1", None)}


async def test_session_is_restored_to_a_checkpoint(memory: AsyncMemory) -> None:
    made = await memory.checkpoint(
        "s1", {"agent_state": {"todo": ["pack"]}}, step=3, source="loop", metadata={"by": "test"}
    )
    await memory.append("s1", "Forget it.")

    restored = await memory.restore_checkpoint("s1", made.checkpoint_id)

    assert (restored.message_seq, restored.last_sequence_no) == (24, 25)
    assert (await memory.window("s1")).messages == 24
    whole = await memory.get_checkpoint("s1", made.checkpoint_id)
    assert whole.contents.agent_state == {"todo": ["pack"]}
    assert (whole.step, whole.source, whole.metadata) == (3, "loop", {"by": "test"})
    listed = await memory.checkpoints("s1", step=3)
    assert [one.checkpoint_id for one in listed] == [made.checkpoint_id]
    assert listed[0].contents is None
    assert await memory.delete_checkpoint("s1", made.checkpoint_id) is None
    with pytest.raises(NotFoundError):
        await memory.get_checkpoint("s1", made.checkpoint_id)


async def test_session_is_forked(memory: AsyncMemory) -> None:
    [first, second] = await memory.messages("s1", 2)

    made = await memory.fork("s1", at_message_id=second.message_id, new_session_id="s1-fork")

    assert (made.session_id, made.copied_messages) == ("s1-fork", 2)
    assert made.forked_from is not None
    assert made.forked_from.message_id == second.message_id
    texts = [one.content for one in await memory.messages("s1-fork", None)]
    assert texts == [first.content, second.content]


async def test_tool_call_waits_for_a_human_decision(memory: AsyncMemory) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    message = {"role": "assistant", "tool_calls": [call], "metadata": {"requires_approval": ["c1"]}}
    await memory.append("s1", message)

    [waiting] = await memory.approvals("s1", status="pending")
    assert (waiting.tool_call_id, waiting.answered) == ("c1", False)
    decided = await memory.decide(
        "s1", "c1", "modified", arguments={"seats": 2}, comment="Two are enough."
    )

    assert (decided.status, decided.arguments) == ("modified", {"seats": 2})
    assert (await memory.approval("s1", "c1")).comment == "Two are enough."
    with pytest.raises(ConflictError):
        await memory.decide("s1", "c1", "rejected")
