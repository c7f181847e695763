"""What holds for any conversation whatever: no failure, no chance, no proposal out of nothing."""

import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules_support import request

from app.language.keyless import reconciler
from app.language.keyless.attributes import attribute_of
from app.language.keyless.extractor import RulesExtractor, propose
from app.language.keyless.reconciler import decide
from app.language.llm.extractor import MEMORY_TYPES, ConversationTurn, ExtractionRequest, Proposed
from app.language.llm.reconciler import Neighbour, ReconcileQuestion

SAID_AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
PIECES = [
    "I live in Munich", "my wife Ana", "and I", "not Berlin", "remember that", "no, I meant",
    "?", ".",
    "last week", "if", "我", "住在慕尼黑", "不是柏林", "，", "。", "喜欢", "记住", "我老婆叫",
    "上个月", "了",
    "\n", '"', "yes, exactly", "对，没错", "you live in", "您住在", "I'm 34", "called",
    "every day", "因为",
]  # fmt: skip
talk = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
)
turns = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), talk, st.booleans()), max_size=6)


def conversation(lines):
    return ExtractionRequest(
        turns=[
            ConversationTurn(f"msg_{number}", role, content, SAID_AT, context=context)
            for number, (role, content, context) in enumerate(lines)
        ]
    )


@given(turns)
def test_proposals_are_whole_and_name_turns_of_the_user(lines):
    asked = conversation(lines)
    own = {each.message_id for each in asked.turns if each.role == "user" and not each.context}
    for each in propose(asked):
        assert each.content.strip()
        assert each.memory_type in MEMORY_TYPES
        assert 0.7 <= each.confidence <= 1.0
        assert each.evidence
        assert own & set(each.evidence)
        assert set(each.evidence) <= {turn.message_id for turn in asked.turns}
        assert each.valid_to is None or each.valid_from is None or each.valid_from < each.valid_to


@given(turns)
def test_the_same_conversation_gives_the_same_proposals(lines):
    assert propose(conversation(lines)) == propose(conversation(lines))


@given(talk, talk, st.booleans(), st.booleans(), st.floats(0, 1))
def test_decisions_name_only_their_neighbours(new, old, protected, retracts, similarity):
    neighbour = Neighbour("mem_1", old, "fact", 1.0, similarity, protected=protected)
    proposed = Proposed(new, "fact", 0.9, ("msg_1",), retracts=retracts)
    decision = decide(ReconcileQuestion(proposed, [neighbour]))
    assert set(decision.memory_ids) <= {"mem_1"}
    assert (decision.event == "UPDATE") == (decision.content is not None)
    assert not protected or decision.event in {"NONE", "ADD"}
    assert decision.reason


@given(st.text(max_size=400))
def test_any_text_gives_an_attribute_with_a_value_or_none(text):
    found = attribute_of(text)
    assert found is None or found[0].startswith("user.")


async def test_a_session_of_nothing_teaches_nothing():
    assert (await RulesExtractor().summarise(request())).proposals == ()
    assert (await RulesExtractor().extract(request())).proposals == ()


@pytest.mark.slow
def test_time_grows_with_the_text_and_no_faster():
    def seconds(text: str) -> float:
        asked = conversation([("user", text, False)])
        started = time.perf_counter()
        propose(asked)
        return time.perf_counter() - started

    for unit in (
        "I live in Munich and I love tea. ",
        "我住在慕尼黑，喜欢喝茶。",
        "a ",
        "我",
        "I ",
        "，",
        '"',
    ):
        # Both below what is read of one turn.
        short, long = unit * (1_500 // len(unit)), unit * (15_000 // len(unit))
        seconds(short)
        once = max(min(seconds(short) for _ in range(3)), 0.002)
        assert min(seconds(long) for _ in range(2)) < 35 * once, unit


def test_no_pattern_repeats_by_a_tuple():
    # In an f-string "{1, 6}" is a tuple, and "(1, 6)" matches nothing that anybody says.
    for path in Path(reconciler.__file__).parent.glob("*.py"):
        assert not re.search(r"(?<!\{)\{\d+, \d+\}", path.read_text(encoding="utf-8")), path.name
