"""What holds for any conversation whatever: no failure, no chance, no word that was not said."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.keyless.english_cues import english_cues
from app.language.keyless.extractor import FLOORS, propose
from app.language.llm.extractor import MEMORY_TYPES, ConversationTurn, ExtractionRequest
from tests.support.tiers import first_fast

SAID_AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
PIECES = [
    "I live in Munich", "my wife Ana", "and I", "not Berlin", "remember that", "no, I meant",
    "?", ".", "last week", "if", "我",
    "住在慕尼黑", "不是柏林", "，", "。", "喜欢", "记住", "我老婆叫",
    "上个月", "了", "\n", '"', "```", "here is my essay: ", "I'm 34", "called", "every day", "因为",
    "can you help me", "she works at Acme", "The user likes tea", "—", "…",
]  # fmt: skip
talk = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
)
turns = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), talk, st.booleans()), max_size=6)


def conversation(lines):
    return ExtractionRequest(
        turns=[
            ConversationTurn(f"m{number}", role, content, SAID_AT, context=context)
            for number, (role, content, context) in enumerate(lines)
        ]
    )


@given(turns)
def test_proposals_are_whole_and_in_the_words_of_the_user(lines):
    asked = conversation(lines)
    own = {each.message_id: each.content for each in asked.turns if each.role == "user"}
    for each in propose(asked):
        (message_id,) = each.evidence
        said = set(own[message_id])
        assert each.content.strip()
        assert set(each.content) <= said | set(" …。，")
        assert each.memory_type in MEMORY_TYPES
        assert min(FLOORS.values()) <= each.confidence <= 1.0
        assert each.valid_to is None or each.valid_from is None or each.valid_from < each.valid_to


@given(turns)
def test_same_conversation_gives_the_same_proposals(lines):
    assert propose(conversation(lines)) == propose(conversation(lines))


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "I live in Munich and I love tea. ", "我住在慕尼黑，喜欢喝茶。", "a ", "我", "I ", "，",
        '"', "-",
        "I, ", "so ", "remember that ", "here is my text: ", "1 ", "if I ", "\n",
    ],
)  # fmt: skip
def test_time_grows_with_the_text_and_no_faster(unit):
    def seconds(text: str) -> float:
        asked = conversation([("user", text, False)])
        started = time.process_time()
        propose(asked)
        return time.process_time() - started

    short, long = unit * (2_000 // len(unit)), unit * (20_000 // len(unit))
    seconds(short)
    once = max(min(seconds(short) for _ in range(3)), 0.002)
    assert min(seconds(long) for _ in range(2)) < 35 * once


def takes_time_in_proportion(read, piece):
    def seconds(length):
        text = (piece * length)[:length]
        began = time.process_time()
        read(text)
        return time.process_time() - began

    seconds(50)
    before = seconds(50)
    for length in (500, 5_000, 50_000):
        now = min(seconds(length) for _ in range(2))
        # A step that looks at all of the rest each time would take a hundred times as long.
        if now >= 30 * before + 0.3:
            return False
        before = now
    return True


@pytest.mark.parametrize("start", ["My ", "我"])
@first_fast(
    "piece",
    [*",a1我，-", " ", "aed ", "x_", "a.", "12 ", "I'm ", "'", '"', "a(", "真的"],
)  # fmt: skip
def test_one_long_sentence_takes_time_in_proportion(start, piece):
    assert takes_time_in_proportion(
        lambda text: propose(conversation([("user", f"{start}{text}.", False)])), piece
    )


@first_fast("piece", ["a", "1", " ", "我", "aed ", "x_", "a.", "1,", "$", "I'm "])
def test_cues_of_a_long_clause_take_time_in_proportion(piece):
    assert takes_time_in_proportion(lambda text: english_cues(text, ""), piece)
