"""For any conversation, strategy and budget: what is shown is valid and fits, the newest is in, and
every message is shown or named.
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.conversation.messages.errors import WindowTooSmallError
from app.conversation.messages.message_forms import Spoken
from app.conversation.messages.schemas import WindowStrategy
from app.conversation.messages.window import groups_of
from app.conversation.messages.window_service import last_tokens, pick_of
from app.conversation.messages.window_trim import Pick, trim
from app.conversation.sessions.policy import WindowPolicy
from app.language.llm.tokens import EstimatedTokens, message_tokens
from app.prompting.context.composition import (
    Composition,
    ContextOptions,
    conversation_parts,
)
from app.prompting.context.dialects import NO_RESULT
from app.prompting.context.scene import Scene, stored_conversation
from app.prompting.context.schemas import ContextRequest

COUNTER = EstimatedTokens()
NOW = datetime(2026, 11, 21, tzinfo=UTC)
WORDS = ("table ", "好的，我明白了。", "x=f(y);\n", '{"a": 1}, ', "🙂 ", "a\tb\n\n")
SIZES = st.one_of(st.integers(1, 40), st.integers(1, 400), st.sampled_from([2_000, 12_000]))


def text(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(WORDS)) * draw(SIZES)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows as the statement returns them: parallel calls, answered in any order or never, texts and
    arguments far above any budget, instructions, images, and results that were not read.
    """
    rows: list[dict[str, Any]] = []
    open_calls: list[str] = []
    kinds = ["user", "assistant", "system", "calling", "calling"]
    # A turn that is as long as the conversation.
    long_turn = draw(st.booleans())
    for number in range(1, draw(st.integers(1, 30)) + 1):
        kind = draw(st.sampled_from([*kinds, *["tool"] * (3 * len(open_calls))]))
        if long_turn and (kind == "user" or number == 1):
            kind = "user" if number == 1 else "calling"
        row: dict[str, Any] = {
            "message_id": f"msg_{number:032x}", "sequence_no": number, "role": kind,
            "content": text(draw), "content_parts": None, "name": None, "tool_calls": None,
            "tool_call_id": None, "event_type": None, "length": None, "text_end": None,
            "is_read": True, "unbroken_from": 1,
            "create_time": (NOW - timedelta(hours=48 if number < 5 else 0)).isoformat(),
        }  # fmt: skip
        if kind == "calling":
            made = [f"c{number}-{one}" for one in range(draw(st.integers(1, 3)))]
            arguments = json.dumps({"of": text(draw)}) if draw(st.booleans()) else "{}"
            function = {"name": "f", "arguments": arguments}
            calls = [{"id": one, "type": "function", "function": function} for one in made]
            row |= {"role": "assistant", "tool_calls": calls}
            row["content"] = draw(st.sampled_from(["", row["content"]]))
            open_calls += made
        elif kind == "tool":
            row["tool_call_id"] = open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))
        elif kind == "system":
            row["event_type"] = draw(st.sampled_from([None, "login"]))
        elif draw(st.integers(0, 5)) == 0:
            row["content_parts"] = [{"type": "image_url", "image_url": {"url": "https://x.y"}}]
        row["tokens"] = message_tokens(
            COUNTER,
            content=row["content"],
            tool_calls=row["tool_calls"],
            content_parts=row["content_parts"],
        )
        rows.append(row)
    return rows


def unanswered(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Calls that nothing answers, with their numbers."""
    answers = {row["tool_call_id"] for row in rows}
    return {
        call["id"]: row["sequence_no"]
        for row in rows
        for call in row["tool_calls"] or ()
        if call["id"] not in answers
    }


def whole_groups(rows: list[dict[str, Any]]) -> list[int]:
    """Numbers behind which compaction may cut."""
    made = {call["id"]: row["sequence_no"] for row in rows for call in row["tool_calls"] or ()}
    pairs = [(made[row["tool_call_id"]], row["sequence_no"]) for row in rows if row["tool_call_id"]]
    return [
        number
        for number in range(len(rows))
        if not any(call <= number < result for call, result in pairs)
    ]


def read_numbers(
    rows: list[dict[str, Any]], pointer: int, unbroken_from: int, waiting: int | None, most: int
) -> tuple[set[int], int | None]:
    """Which rows the statement returns of a window that begins behind `pointer`, where its newest
    end begins at `unbroken_from`; then the newest call of the current turn.
    """
    inside = [row for row in rows if row["sequence_no"] > pointer]

    def numbers(role: str, among: list[dict[str, Any]]) -> list[int]:
        return [row["sequence_no"] for row in among if row["role"] == role]

    spoken = [row["role"] for row in inside if row["role"] != "system"]
    begins_inside = bool(spoken) and spoken[0] != "user"
    opening = numbers("user", rows[:pointer])[-1:] if begins_inside else []
    asked = (numbers("user", inside) or opening)[-1:]
    since = max(*asked, pointer) if asked else pointer
    steps = [row["sequence_no"] for row in inside if row["tool_calls"]]
    step = max((number for number in steps if number > since), default=None)
    found = {row["sequence_no"] for row in inside if row["sequence_no"] >= unbroken_from}
    found |= {*asked, *opening, inside[0]["sequence_no"]}
    calls = {call["id"] for call in inside[0]["tool_calls"] or ()}
    found |= {row["sequence_no"] for row in inside if row["tool_call_id"] in calls}
    for call in filter(None, (step, waiting)):
        found |= {call, *(number for number in numbers("tool", inside) if number > call)}
    return found | carried(rows, most), step


def carried(rows: list[dict[str, Any]], most: int) -> set[int]:
    """Numbers of the newest instructions of `rows` that take at most `most` tokens."""
    found = set()
    for row in reversed([row for row in rows if row["role"] == "system"]):
        if row["event_type"] is None:
            most -= row["tokens"]
            if most < 0:
                break
            found.add(row["sequence_no"])
    return found


def counted(rows: list[dict[str, Any]], pointer: int, found: set[int], most: int) -> int:
    """Tokens of a window as the session has them: the request that it begins inside of and
    instructions from before it count, as they are shown.
    """
    before = rows[:pointer]
    opening = {row["sequence_no"] for row in before if row["role"] == "user"} & found
    numbers = opening | carried(before, most)
    return sum(
        row["tokens"]
        for row in rows
        if row["sequence_no"] > pointer or row["sequence_no"] in numbers
    )


def as_read(rows: list[dict[str, Any]], budget: int, first_read: int) -> list[dict[str, Any]]:
    """The rows as the statement would return them for a budget: of what is longer the ends, and
    nothing of older results.
    """
    read = []
    for stored in rows:
        row = dict(stored)
        if row["role"] == "tool" and row["sequence_no"] < first_read:
            row |= {"content": "", "is_read": False}
        elif row["tokens"] > budget:
            said, ends = row["content"], 4 * budget
            row |= {"content": said[:ends], "text_end": said[-ends:], "length": len(said)}
        read.append(row)
    return read


def anything(chosen: set[int]) -> Pick:
    """A strategy that points at messages by their place, whatever they are."""
    return lambda window: [
        one.message_id for place, one in enumerate(window.messages) if place in chosen
    ]


STRATEGIES = st.one_of(
    st.builds(
        WindowStrategy,
        name=st.sampled_from(["last_tokens", "last_messages", "first_last", "message_fraction"]),
        count=st.integers(1, 8),
        keep=st.integers(1, 4),
        fraction=st.floats(0, 1),
    ).map(lambda one: pick_of(one, {})),
    st.sets(st.integers(0, 30)).map(anything),
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Scene, ContextOptions]:
    rows = draw(conversations())
    budget = draw(st.one_of(st.integers(100, 600), st.integers(100, 8_000)))
    policy = WindowPolicy(budget_tokens=budget, reserved_tokens=draw(st.sampled_from([0, 50])))
    pointer = draw(st.sampled_from([0, *whole_groups(rows)]))
    unbroken_from = draw(st.integers(pointer + 1, len(rows)))
    open_calls = {one: at for one, at in unanswered(rows).items() if at > pointer}
    waiting = draw(st.sampled_from([None, *open_calls]))
    found, step = read_numbers(
        rows, pointer, unbroken_from, open_calls.get(waiting or ""), policy.carried_tokens
    )
    held_from = max(draw(st.integers(0, 30)), unbroken_from)
    chosen = [one | {"unbroken_from": unbroken_from} for one in rows if one["sequence_no"] in found]
    read = as_read(chosen, budget, min(held_from, step or held_from))
    row = {
        "session_id": "s", "tail": json.dumps(read), "in_context_from": pointer,
        "waiting": [waiting] if waiting else [], "stored": rows,
        "counted": None, "window_tokens": counted(rows, pointer, found, policy.carried_tokens),
        "window_messages": len(rows) - pointer, "last_user_seq": 0, "summary_tokens": 0,
        "token_scale": draw(st.sampled_from([1.0, 1.25])), "user_name": None, "profile": {},
        "user_profile": None, "project_profile": None, "in_project": False,
        "compaction_job": None, "beside_tokens": None, "memory_tokens": None,
    }  # fmt: skip
    conversation = stored_conversation(row, policy, NOW - timedelta(hours=24))
    summaries = draw(st.sampled_from([[], ["They met in Rome."]]))
    scene = Scene(row, policy, [], summaries, conversation)  # type: ignore[arg-type]  # as above
    clear = draw(st.sampled_from([None, {"keep": 1}]))
    body = ContextRequest(render="openai", clear_tool_results=clear)
    options = ContextOptions(body, draw(st.sampled_from(["", "Be kind."])), 500, draw(STRATEGIES))
    return scene, options


def answer_to(scene: Scene, options: ContextOptions) -> dict[str, Any]:
    parts = conversation_parts(scene, options, COUNTER)
    return Composition(scene, options, parts, None, COUNTER, None).answer()


def named(prompt: str) -> set[int]:
    """The numbers that the line about what is left out names."""
    found = re.search(r"<left_out>\n.*not shown here: ([^.]*)\.", prompt)
    numbers: set[int] = set()
    for one in found[1].split(", ") if found else ():
        first, *last = map(int, re.findall(r"\d+", one))
        numbers |= set(range(first, (last or [first])[0] + 1))
    return numbers


def check_openai(messages: list[dict[str, Any]]) -> None:
    """Results right behind their calls, every call answered before anybody speaks again."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting or message["role"] == "system"
        waiting += [call["id"] for call in message.get("tool_calls", ())]
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


@settings(deadline=None)
@given(requests())
def test_nothing_is_lost_and_it_fits_or_the_figures_say_why_not(
    request: tuple[Scene, ContextOptions],
) -> None:
    scene, options = request
    conversation = scene.conversation
    groups = groups_of(conversation.window)
    gone = groups.closed(groups.given_up)
    usable = [place for place, group in enumerate(groups.members) if group and place not in gone]
    try:
        answer = answer_to(scene, options)
    except WindowTooSmallError as error:
        check_refusal(scene, options, error)
        return
    window = answer["window"]
    assert window["fits"]
    # Within the budget, counted anew as it is sent; and all that is sent presses.
    own = conversation_parts(scene, options, COUNTER)
    # What becomes of images and files in a dialect is counted by the estimate for them.
    texts = [one for one in answer["messages"] if not isinstance(one["content"], list)]
    tokens = COUNTER.count(answer["prompt"]) + sum(
        message_tokens(COUNTER, content=one["content"] or "", tool_calls=one.get("tool_calls"))
        for one in texts
        if one["role"] != "system" or one["content"] != answer["prompt"]
    )
    tokens += sum(
        message_tokens(COUNTER, content=one.content, content_parts=one.content_parts)
        for one in own.window.spoken
        if one.content_parts
    )
    assert tokens * scene.row["token_scale"] <= scene.policy.budget_tokens + 1
    assert answer["pressure"]["tokens"] >= int(answer["tokens"] * scene.row["token_scale"])
    # What is shown in a shorter form for want of room is never so at the level ok.
    if any(one.message.is_read and one.form != "whole" for one in own.window.shown):
        assert answer["pressure"]["level"] == "flush"
    assert window["tokens"] == next(
        one["tokens"] for one in answer["parts"] if one["name"] == "window"
    )
    # Valid: pairs stay together, and the user speaks first unless it never spoke before.
    check_openai(answer["messages"])
    first = next((one for one in own.window.shown if one.message.role != "system"), None)
    assert (
        answer["starts_with_user"]
        or first is None
        or not any(
            one.role == "user" and one.sequence_no < first.message.sequence_no
            for one in conversation.window.messages
        )
    )
    # Every message is shown, or named to the model and in the answer.
    shown = {one.message.sequence_no for one in own.window.shown}
    stored, pointer = scene.row["stored"], conversation.window.pointer
    inside = {one["sequence_no"] for one in stored if one["sequence_no"] > pointer}
    every = inside | {one.sequence_no for one in conversation.window.messages}
    assert every - shown <= named(answer["prompt"])
    ranges = {
        number
        for one in window["left_out_ranges"]
        for number in range(one["from_sequence_no"], one["to_sequence_no"] + 1)
    }
    # A range may go over numbers that left the window before.
    assert every - shown <= ranges
    assert not ranges & shown
    assert not {number for number in ranges if number > pointer} - inside
    assert window["left_out"] == len(inside - shown)
    # No call that has a result seems to have none, wherever the result is.
    lacking = unanswered(stored)
    for one in answer["messages"]:
        assert one["content"] != NO_RESULT or one["tool_call_id"] in lacking
    # The newest is in.
    if usable:
        assert conversation.window.messages[max(usable)].sequence_no in shown
    # What is shown in a shorter form says so, and where the rest is.
    for one in window["shortened"]:
        assert one["whole_tokens"] > one["tokens"] or one["form"] == "cleared"
    texts = json.dumps(answer["messages"], ensure_ascii=False)
    for one in window["shortened"]:
        assert one["message_id"] in texts


@settings(deadline=None)
@given(requests())
def test_a_call_waits_only_without_a_result_and_until_the_user_speaks_or_decides(
    request: tuple[Scene, ContextOptions],
) -> None:
    scene, _ = request
    conversation, stored = scene.conversation, scene.row["stored"]

    shown = trim(conversation.window, last_tokens, 10_000_000)

    lacking = unanswered(stored)
    asked = max((one["sequence_no"] for one in stored if one["role"] == "user"), default=0)
    for call in shown.waiting:
        assert lacking[call] > asked or _awaits_approval(scene, call)
    assert set(scene.row["waiting"]) <= set(shown.waiting)


def _awaits_approval(scene: Scene, call_id: str) -> bool:
    """Whether an approval waits for a call, or for another of the same message."""
    made = (one["tool_calls"] or () for one in scene.row["stored"])
    together = next(calls for calls in made if any(one["id"] == call_id for one in calls))
    return any(one["id"] in scene.row["waiting"] for one in together)


def check_refusal(scene: Scene, options: ContextOptions, error: WindowTooSmallError) -> None:
    """With the tokens that it says are needed it fits, and the figures are no guess."""
    budget, needed = error.members["budget_tokens"], error.members["needed_tokens"]
    assert budget == scene.policy.budget_tokens
    assert isinstance(needed, int)
    assert needed > scene.policy.budget_tokens
    # A conversation whose least is small is never refused.
    assert needed < 3_000


def answer_of(spoken: Sequence[Spoken], budget: int, instructions: str = "") -> dict[str, Any]:
    """The answer about a session of these messages alone."""
    rows = [
        {
            "message_id": f"m{number}", "sequence_no": number, "role": message.role,
            "content": message.content, "content_parts": None, "name": None,
            "tool_calls": message.tool_calls, "tool_call_id": message.tool_call_id,
            "event_type": None, "length": None, "text_end": None, "is_read": True,
            "unbroken_from": 1, "create_time": NOW.isoformat(),
            "tokens": message_tokens(
                COUNTER, content=message.content, tool_calls=message.tool_calls
            ),
        }
        for number, message in enumerate(spoken, 1)
    ]  # fmt: skip
    row = {
        "session_id": "s", "tail": json.dumps(rows), "in_context_from": 0, "waiting": [],
        "counted": None, "window_tokens": 1, "window_messages": len(rows), "last_user_seq": 1,
        "summary_tokens": 0, "token_scale": 1.0, "user_name": None, "profile": {},
        "user_profile": None, "project_profile": None, "in_project": False,
        "compaction_job": None, "beside_tokens": None, "memory_tokens": None,
    }  # fmt: skip
    policy = WindowPolicy(budget_tokens=budget)
    conversation = stored_conversation(row, policy, NOW - timedelta(hours=24))
    scene = Scene(row, policy, [], [], conversation)  # type: ignore[arg-type]  # a mapping stands for the record
    body = ContextRequest(render="openai")
    return answer_to(scene, ContextOptions(body, instructions, 500, pick_of(body.strategy, {})))


def test_a_conversation_far_above_its_budget_is_shown_in_it() -> None:
    """The least that is needed does not grow with the texts."""
    call = [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
    spoken = [
        Spoken("user", "Look. " * 5_000),
        Spoken("assistant", "", tool_calls=call),
        Spoken("tool", "word " * 30_000, tool_call_id="c"),
    ]
    for budget in (200, 400, 4_000):
        answer = answer_of(spoken, budget)

        assert [one["role"] for one in answer["messages"]] == ["user", "assistant", "tool"]
        assert answer["tokens"] <= budget
        # Both are cut, and what there is room for is used.
        assert {one["form"] for one in answer["window"]["shortened"]} <= {"cut", "cleared"}
        assert answer["tokens"] > 0.6 * budget


@pytest.mark.parametrize("tokens", [1, 60])
def test_the_least_that_is_needed_is_enough_and_less_is_not(tokens: int) -> None:
    """At the figure that a refusal names it fits; one below it does not."""

    def built(budget: int) -> dict[str, Any]:
        return answer_of([Spoken("user", "word " * 300)], budget, "Be kind. " * tokens)

    with pytest.raises(WindowTooSmallError) as refused:
        built(20)
    needed = refused.value.members["needed_tokens"]
    assert isinstance(needed, int)
    assert built(needed)["window"]["fits"]
    with pytest.raises(WindowTooSmallError):
        built(needed - 1)
