"""Which memories an answer seems to draw on: by words, in English and Chinese."""

from datetime import UTC, datetime, timedelta

import pytest

from app.memory.extraction.shared_words import Reply, ShownMemory, drawn_on

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=1)


def found(memory: str, reply: str, *said: str) -> bool:
    return drawn_on([Reply(reply, LATER)], said, [ShownMemory("mem_1", memory, NOON)]) == ["mem_1"]


@pytest.mark.parametrize(
    ("memory", "reply"),
    [
        ("The user is allergic to peanuts.", "Careful: you are allergic to peanuts."),
        ("The user works as a pilot at Lufthansa.", "As a pilot at Lufthansa you fly for less."),
        ("用户对花生过敏。", "小心，你对花生过敏。"),
        ("用户住在慕尼黑。", "从慕尼黑出发，三小时可到。"),
    ],
)
def test_an_answer_with_most_words_of_a_memory_draws_on_it(memory: str, reply: str) -> None:
    assert found(memory, reply)


@pytest.mark.parametrize(
    ("memory", "reply"),
    [
        ("The user is allergic to peanuts.", "Try the noodles with tofu."),
        ("The user works as a pilot at Lufthansa.", "The weather in Bonn is fine."),
        ("用户对花生过敏。", "今天天气很好。"),
        ("The user is vegan.", "You could try a vegan curry."),
    ],
    ids=["other words", "other subject", "chinese", "one word says too little"],
)
def test_an_answer_without_them_does_not(memory: str, reply: str) -> None:
    assert not found(memory, reply)


def test_the_share_of_words_decides() -> None:
    memory = "Ana plays chess, tennis, cello and poker."

    assert found(memory, "Bring the cello, the poker cards and chess.")
    assert not found(memory, "Bring the cello and the poker cards.")


def test_what_the_user_said_as_well_explains_nothing() -> None:
    memory, reply = "The user is allergic to peanuts.", "Noted: you are allergic to peanuts."

    assert not found(memory, reply, "I am allergic to peanuts.")
    assert found(memory, reply, "What should I eat?")


def test_an_answer_from_before_the_memory_was_shown_does_not_draw_on_it() -> None:
    shown = [ShownMemory("mem_1", "The user is allergic to peanuts.", LATER)]
    reply = "You are allergic to peanuts."

    assert drawn_on([Reply(reply, NOON)], [], shown) == []
    assert drawn_on([Reply(reply, LATER)], [], shown) == ["mem_1"]
