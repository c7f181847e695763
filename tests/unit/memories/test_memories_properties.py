"""What is always true of ranking, of candidates and of pairs, whatever the input."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.conversation.messages.window import closure
from app.language.text.normal_forms import content_hash
from app.memory.memories.candidates import REMEMBERED_ROLES, among_themselves, candidates
from app.memory.memories.gate import Gate
from app.memory.memories.schemas import MemoryCreate


@dataclass(frozen=True)
class Said:
    message_id: str
    tool_call_id: str | None
    tool_calls: list[dict[str, Any]] | None


@st.composite
def conversations(draw) -> list[Said]:
    """Calls and results as the service lets them in: each result answers an open call."""
    said: list[Said] = []
    open_calls: list[str] = []
    for index in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["text", "call", "result"]))
        if kind == "call":
            calls = [f"c{index}.{n}" for n in range(draw(st.integers(1, 3)))]
            open_calls += calls
            said.append(Said(f"m{index}", None, [{"id": one} for one in calls]))
        elif kind == "result" and open_calls:
            answered = open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))
            said.append(Said(f"m{index}", answered, None))
        else:
            said.append(Said(f"m{index}", None, None))
    return said


def chosen_from(said: list[Said]) -> st.SearchStrategy[set[str]]:
    return st.sets(st.sampled_from([one.message_id for one in said])) if said else st.just(set())


@given(said=conversations(), data=st.data())
def test_taking_messages_out_never_parts_a_call_from_its_results(said, data) -> None:
    chosen = data.draw(chosen_from(said))

    taken = closure(chosen, said)

    left = [one for one in said if one.message_id not in taken]
    called = {call["id"] for one in said for call in one.tool_calls or []}
    calls_left = {call["id"] for one in left for call in one.tool_calls or []}
    results = {one.tool_call_id for one in said if one.tool_call_id}
    results_left = {one.tool_call_id for one in left if one.tool_call_id}
    assert results <= called
    assert results_left <= calls_left
    assert calls_left & results <= results_left


@given(said=conversations(), data=st.data())
def test_no_more_messages_are_removed_than_needed(said, data) -> None:
    chosen = data.draw(chosen_from(said))

    taken = closure(chosen, said)

    assert chosen <= taken
    assert closure(taken, said) == taken
    assert taken == chosen.union(*(closure({one}, said) for one in chosen))
    plain = {one.message_id for one in said if not one.tool_calls and not one.tool_call_id}
    assert taken & plain == chosen & plain


messages = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system", "tool"]),
            "content": st.sampled_from(["茶", "Green tea.", "green TEA.", " Green  tea. "])
            | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20),
        }
    ),
    min_size=1,
    max_size=8,
)


@given(messages)
def test_each_message_has_one_outcome_before_anything_is_stored(said) -> None:
    judged = candidates(MemoryCreate(messages=said, user_id="ana"), Gate())

    assert [one.index for one in judged] == list(range(len(said)))
    seen: set[bytes] = set()
    for one, message in zip(judged, said, strict=True):
        assert one.content == message["content"].strip()
        skipped = message["role"] not in REMEMBERED_ROLES
        assert (one.event == "SKIP") == skipped
        assert (one.event == "REJECT") == bool(one.reasons)
        if one.event in {None, "NONE"}:
            digest = content_hash(message["content"])
            assert (one.event == "NONE") == (digest in seen)
            seen.add(digest)


@given(
    texts=st.lists(st.sampled_from(["Green tea.", "Tea, green.", "A cat.", "茶。"]), max_size=6),
    floor=st.floats(0, 1),
)
def test_only_an_earlier_new_statement_of_a_request_is_a_duplicate(texts, floor) -> None:
    fresh = []
    for index, text in enumerate(texts):
        [one] = candidates(MemoryCreate(messages=text, user_id="ana"), Gate(min_length=1))
        one.index, one.memory_id = index, str(index)
        angle = len(text)
        one.vector = np.array([np.cos(angle), np.sin(angle)], np.float32)
        fresh.append(one)

    twins = among_themselves(fresh, lambda _text: floor)

    for index, (first, _, similarity) in twins.items():
        assert int(first) < index
        assert int(first) not in twins
        assert similarity >= floor


@pytest.mark.parametrize(
    ("attribute", "taken"),
    [
        ("user.residence", True),
        ("老周.occupation", True),
        ("dr.müller.employer", True),
        ("residence", False),
        ("User.residence", True),
        ("老 周.occupation", False),
        ("老周.职业", False),
    ],
)
def test_attribute_has_a_subject_in_any_script_and_an_english_property(attribute, taken) -> None:
    try:
        MemoryCreate(messages="老周是木匠。", user_id="ana", attribute=attribute)
    except ValidationError:
        assert not taken
    else:
        assert taken
