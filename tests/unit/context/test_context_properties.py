"""For any conversation, policy and memories: a context is valid, within budget and in order."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise, takewhile
from typing import Any

from hypothesis import given, reject
from hypothesis import strategies as st

from app.conversation.messages.errors import WindowTooSmallError
from app.conversation.messages.excerpts import Excerpts, FoundMessage, FoundPiece
from app.conversation.messages.schemas import WindowStrategy
from app.conversation.messages.window_service import pick_of
from app.conversation.sessions.policy import WindowPolicy
from app.language.llm.tokens import EstimatedTokens, message_tokens
from app.language.text.prompt_text import escape_line
from app.memory.memories.candidate_search import Found
from app.memory.memories.hybrid import RankedMemory, RankWeights
from app.memory.memories.recall_service import RecallResult
from app.prompting.context.composition import (
    Composition,
    ContextOptions,
    conversation_parts,
)
from app.prompting.context.scene import Scene, stored_conversation
from app.prompting.context.schemas import ContextRequest

Answer = dict[str, Any]
COUNTER = EstimatedTokens()
NOW = datetime(2026, 11, 21, tzinfo=UTC)
TEXTS = st.one_of(
    st.sampled_from(["ok", "好的", "word " * 40, "我昨天搬到慕尼黑了。" * 12, "x = f(y)\n" * 9]),
    st.text(max_size=60),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages as append lets them in: a result answers a call before it that is open."""
    rows: list[dict[str, Any]] = []
    open_calls: list[str] = []
    for number in range(1, draw(st.integers(0, 25)) + 1):
        roles = ["user", "assistant", "system", "calling", *(["tool"] * 3 if open_calls else [])]
        role = draw(st.sampled_from(roles))
        row: dict[str, Any] = {
            "message_id": f"m{number}", "sequence_no": number, "role": role,
            "content": draw(TEXTS), "content_parts": None, "name": None, "tool_calls": None,
            "tool_call_id": None, "event_type": None, "is_read": True, "length": None,
            "unbroken_from": 1,
            # Some calls were made so long ago that nobody waits for them.
            "create_time": (NOW - timedelta(hours=48 if number < 5 else 0)).isoformat(),
        }  # fmt: skip
        if role == "calling":
            ids = [f"c{number}-{one}" for one in range(draw(st.integers(1, 3)))]
            calls = [{"id": one, "function": {"name": "f", "arguments": "{}"}} for one in ids]
            row |= {"role": "assistant", "tool_calls": calls}
            open_calls += ids
        elif role == "tool":
            row["tool_call_id"] = open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))
        elif role == "system":
            row["event_type"] = draw(st.sampled_from([None, "login"]))
        row["tokens"] = message_tokens(
            COUNTER, content=row["content"], tool_calls=row["tool_calls"]
        )
        rows.append(row)
    return rows


# As likely as not derived from a memory whose words it repeats.
VALUES = st.fixed_dictionaries(
    {
        "value": TEXTS | st.lists(TEXTS, min_size=1, max_size=3),
        "memory_ids": st.lists(st.sampled_from([f"mem_{one}" for one in range(6)]), max_size=6),
    }
)


@st.composite
def memories(draw: st.DrawFn) -> list[Found]:
    found = []
    # A few texts for all of them: drawing a text for each field was most of what these tests cost.
    texts = st.sampled_from(draw(st.lists(TEXTS, min_size=1, max_size=8)))
    texts_or_none, times = st.none() | texts, st.sampled_from([None, NOW])
    for number in range(draw(st.integers(0, 20))):
        row = {
            "memory_id": f"mem_{number}", "content": draw(texts), "scope": "user", "version": 1,
            "memory_type": draw(st.sampled_from(["fact", "correction"])),
            "speaker": draw(texts_or_none), "said_at": draw(times),
            "source_error": draw(texts_or_none), "valid_from": draw(times),
            "valid_to": draw(times),
            "conflicts_with": draw(st.sampled_from([[], ["mem_0"]])), "newer_conflicts": [],
        }  # fmt: skip
        ranked = RankedMemory(row["memory_id"], 1 - number / 100, 0.5, 0.5, 0.5, 1.0, 0.6)
        found.append(Found(row, ranked))  # type: ignore[arg-type]  # a record reads the same
    return found


@st.composite
def excerpts(draw: st.DrawFn) -> Excerpts:
    """Pieces of messages of some sessions, in any order."""
    pieces: list[FoundPiece] = []
    for number in range(draw(st.integers(0, 12))):
        text = draw(st.text(max_size=60)) + "."
        ends = sorted({*draw(st.lists(st.integers(1, len(text)), max_size=3)), len(text)})
        message = FoundMessage(
            place=number,
            message_id=f"msg_{number}",
            session_id=draw(st.sampled_from("st")),
            role=draw(st.sampled_from(["user", "assistant"])),
            name=draw(st.none() | TEXTS),
            sequence_no=number + 1,
            session_messages=20,
            # A client may say that a later message was said on an earlier day.
            said_at=NOW + timedelta(days=draw(st.integers(0, 1))),
            read=partial(str, text),
            wish=False,
            ends=ends,
            read_request=draw(st.none() | TEXTS.map(lambda said: partial(str, said))),
        )
        pieces += [FoundPiece(message, one, 0.5, None, (), ()) for one in range(len(ends))]
    return Excerpts(draw(st.permutations(pieces)), {"s": 1, "t": 2}, 2, 20)


STRATEGIES = st.builds(
    WindowStrategy,
    name=st.sampled_from(["last_tokens", "last_messages", "first_last", "message_fraction"]),
    count=st.integers(1, 8),
    keep=st.integers(1, 4),
    fraction=st.floats(0, 1),
)


@st.composite
def compositions(draw: st.DrawFn, render: str = "parts") -> Composition:
    rows = draw(conversations())
    policy = WindowPolicy(
        budget_tokens=draw(st.integers(100, 1500)), reserved_tokens=draw(st.integers(0, 300))
    )
    row = {
        "session_id": "s", "tail": json.dumps(rows), "in_context_from": 0, "waiting": [],
        "counted": None, "window_tokens": sum(one["tokens"] for one in rows),
        "window_messages": len(rows), "last_user_seq": 0, "summary_tokens": 0,
        "token_scale": draw(st.sampled_from([1.0, 1.1, 1.25])),
        "user_name": draw(st.none() | TEXTS),
        "profile": draw(st.dictionaries(TEXTS, TEXTS, max_size=5)),
        "user_profile": {
            "instructions": draw(st.none() | TEXTS),
            "values": draw(st.none() | st.dictionaries(TEXTS, VALUES, max_size=3)),
        },
        "project_profile": None,
        "in_project": False,
        "compaction_job": None,
    }  # fmt: skip
    conversation = stored_conversation(row, policy, NOW - timedelta(hours=24))
    summaries = draw(st.lists(TEXTS, max_size=2))
    scene = Scene(row, policy, [], summaries, conversation)  # type: ignore[arg-type]  # as above
    body = ContextRequest(
        render=render,
        strategy=draw(STRATEGIES),
        max_memory_tokens=draw(st.integers(100, 900)),
        tools_tokens=draw(st.none() | st.integers(0, 400)),
    )
    options = ContextOptions(
        body,
        draw(st.sampled_from(["", "Be kind. " * 20])),
        body.max_memory_tokens or 0,
        pick_of(body.strategy, {}),
    )
    recalled = RecallResult(RankWeights(), draw(memories()))
    try:
        parts = conversation_parts(scene, options, COUNTER)
    except WindowTooSmallError:
        # Whether that is right, `test_context_window_properties.py` tells.
        reject()
    return Composition(
        scene,
        options,
        parts,
        recalled,
        COUNTER,
        None,
        excerpts=draw(st.none() | excerpts()),
    )


def part(answer: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in answer["parts"] if one["name"] == name)


def it_is_within_its_budgets_and_in_order(composition: Composition, answer: Answer) -> None:
    policy, scale = composition.scene.policy, composition.scene.row["token_scale"]
    assert answer["memory_tokens"] <= composition.options.memory_tokens
    window = answer["window"]
    room = part(answer, "window")["budget"]
    assert (window["tokens"] <= room) == window["fits"] or not window["messages"]
    if window["fits"]:
        fixed = sum(part(answer, one)["tokens"] for one in ("instructions", "summary"))
        assert not window["messages"] or (fixed + window["tokens"]) * scale <= policy.budget_tokens
    numbers = [one["sequence_no"] for one in answer["messages"]]
    assert numbers == sorted(set(numbers))
    # Nothing is lost on the way: what is not shown is told as left out.
    total = len(composition.scene.conversation.spoken)
    assert window["messages"] == len(numbers)
    assert window["left_out"] == total - len(numbers)
    assert window["messages"] > 0 or total == 0 or not _sayable(composition)


def _sayable(composition: Composition) -> bool:
    """Whether there is a message that is no call given up and no result without its call."""
    return any(
        one.role in {"user", "assistant"} and not one.calls
        for one in composition.scene.conversation.window.messages
    )


def pressure_counts_all_that_is_sent_and_says_when_it_is_too_much(
    composition: Composition, answer: Answer
) -> None:
    row, policy = composition.scene.row, composition.scene.policy
    tools = composition.options.body.tools_tokens or 0
    pressure = answer["pressure"]
    own = max(policy.reserved_tokens, part(answer, "instructions")["tokens"] + tools)
    counted = own + part(answer, "summary")["tokens"] + answer["memory_tokens"]
    counted += sum(one["tokens"] for one in answer["parts"] if one["name"] == "left_out")
    counted += composition.conversation.window.trimmed.inserted
    assert pressure["tokens"] == round(row["token_scale"] * (counted + row["window_tokens"]))
    assert pressure["tokens"] >= round(row["token_scale"] * (answer["tokens"] + tools))
    assert pressure["share"] == round(pressure["tokens"] / policy.budget_tokens, 4)
    if row["window_tokens"] > part(answer, "window")["budget"]:
        assert pressure["level"] == "flush"
        left_out = answer["window"]["left_out"]
        assert (f"{left_out} older messages are left out" in pressure["notice"]) == (left_out > 0)


def it_is_a_conversation_that_begins_with_the_user(
    composition: Composition, answer: Answer
) -> None:
    speakers = [one["role"] for one in answer["messages"] if one["role"] != "system"]
    assert answer["starts_with_user"] == (speakers[:1] == ["user"])
    spoken = composition.scene.conversation.spoken.values()
    asked = [one for one in spoken if one.role == "user"]
    if asked:
        # Calls that wait, and the call of the newest message, may be from before the first request.
        shown = {one["message_id"] for one in answer["messages"]}
        first = next(one for one in spoken if one.message_id in shown and one.role != "system")
        before = takewhile(lambda one: one is not first, spoken)
        assert answer["starts_with_user"] or not any(one.role == "user" for one in before)
        # The current request is always there.
        assert asked[-1].message_id in {one["message_id"] for one in answer["messages"]}


# Most of the time goes into making one up: each is held against all that is promised.
@given(compositions())
def test_whatever_was_said_and_remembered_every_promise_is_kept(composition: Composition) -> None:
    answer = composition.answer()

    it_is_within_its_budgets_and_in_order(composition, answer)
    pressure_counts_all_that_is_sent_and_says_when_it_is_too_much(composition, answer)
    it_is_a_conversation_that_begins_with_the_user(composition, answer)
    corrections_come_first_and_everything_in_the_order_of_its_score(composition, answer)
    only_what_the_profile_shows_has_no_line_of_its_own(composition, answer)
    excerpts_stand_in_order_and_their_message_once(composition, answer)
    nothing_remembered_breaks_out_of_its_block(composition, answer)


@given(compositions(render="openai"))
def test_openai_takes_it_and_the_same_gives_the_same(composition: Composition) -> None:
    answer = composition.answer()
    messages = answer["messages"]
    assert composition.answer() == answer

    waiting: list[str] = []
    spoken = [place for place, one in enumerate(messages) if one["role"] in {"user", "assistant"}]
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        # Every call is answered before anybody speaks again.
        assert not waiting or message["role"] == "system"
        waiting += [call["id"] for call in message.get("tool_calls", ())]
        if waiting and place < spoken[-1]:
            after = messages[place + 1 : place + 1 + len(waiting)]
            assert {one["tool_call_id"] for one in after} == set(waiting)


@given(compositions(render="anthropic"))
def test_anthropic_takes_it(composition: Composition) -> None:
    messages = composition.answer()["messages"]

    roles = [one["role"] for one in messages]
    assert all(one != other for one, other in pairwise(roles))
    made: set[str] = set()
    for message in messages:
        assert message["content"]
        used = {block["id"] for block in message["content"] if block["type"] == "tool_use"}
        results = {
            block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"
        }
        assert results <= made
        said = any(block["type"] == "text" for block in message["content"])
        if message["role"] == "user" and made and (said or message is not messages[-1]):
            # Only at the end a call may still wait.
            assert results == made
        made = used


def corrections_come_first_and_everything_in_the_order_of_its_score(
    composition: Composition, answer: Answer
) -> None:
    used = answer["used"]

    corrections = [one for one in used if one["part"] == "corrections"]
    others = [one for one in used if one["part"] == "memories"]
    said = [one for one in used if one["part"] == "profile"]
    assert used == [*said, *corrections, *others]
    for group in (said, corrections, others):
        scores = [one["score"] for one in group]
        assert scores == sorted(scores, reverse=True)
    assert len({one["memory_id"] for one in used}) == len(used)


def only_what_the_profile_shows_has_no_line_of_its_own(
    composition: Composition, answer: Answer
) -> None:
    assert composition.recalled is not None
    rows = {one.ranked.memory_id: one.row for one in composition.recalled.found}
    profile = part(answer, "profile")["text"] or ""
    for one in answer["used"]:
        if one["part"] == "profile":
            row = rows[one["memory_id"]]
            assert escape_line(row["content"]) in profile
            assert (row["memory_type"], row["source_error"], row["valid_from"]) == (
                "fact", None, None,
            )  # fmt: skip
            assert one["tokens"] == 0
    # Whatever was found is shown, or told as left out of the part where it would stand.
    left = part(answer, "memories")["dropped"]
    assert len(answer["used"]) + left == len(rows)


def excerpts_stand_in_order_and_their_message_once(
    composition: Composition, answer: Answer
) -> None:
    used = answer["used_excerpts"]
    assert len({one["message_id"] for one in used}) == len(used)
    order = [(one["said_at"].date(), one["session_id"], one["sequence_no"]) for one in used]
    assert order == sorted(order)
    for one in used:
        assert one["pieces"] == sorted(set(one["pieces"]))
        assert 0 <= one["pieces"][0] <= one["pieces"][-1] < one["of_pieces"]
    block = part(answer, "excerpts")
    assert block["shown"] == len(used)
    assert COUNTER.count(block["text"] or "") <= block["tokens"] <= (block["budget"] or 0)
    found = composition.excerpts.pieces if composition.excerpts else ()
    assert block["dropped"] == len({one.message.message_id for one in found}) - len(used)


def nothing_remembered_breaks_out_of_its_block(composition: Composition, answer: Answer) -> None:
    prompt = answer["prompt"]

    tags = [line for line in prompt.splitlines() if "<" in line]
    parts = ("memory", "summary", "left_out")
    assert set(tags) <= {f"<{one}>" for one in parts} | {f"</{one}>" for one in parts}
