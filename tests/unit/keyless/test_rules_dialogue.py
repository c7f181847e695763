"""What a turn says only together with the one before it, and in which language."""

import pytest
from rules_support import proposed, said

ANSWERS = [
    ("Where do you live?", "Munich.", "The user lives in Munich."),
    ("Nice to meet you! What's your name?", "Priya", "The user's name is Priya."),
    ("How old are you?", "42", "The user is 42 years old."),
    ("What do you do for a living?", "Carpenter.", "The user works as a carpenter."),
    ("Do you have any allergies?", "Just peanuts.", "The user is allergic to peanuts."),
    ("What's your dog's name?", "Rufus", "The user's dog's name is Rufus."),
    ("Do you smoke?", "No.", "The user does not smoke."),
]
NO_ANSWERS = [
    ("Where do you live?", "Why do you ask?"),
    ("Where do you live?", "I'd rather not say."),
    ("How can I help?", "Munich."),
    ("What's your name?", "none of your business"),
]
CORRECTIONS = [
    ("So you live in Paris, right?", "No, Lyon.", "The user lives in Lyon."),
    ("Your daughter is 6, you said.", "She's 7 actually.", "The user's daughter is 7."),
    ("Your exam is on Monday.", "Tuesday, not Monday.", "The user's exam is on Tuesday."),
    ("You have two cats.", "three, sorry", "The user has three cats."),
]


@pytest.mark.parametrize(("question", "answer", "content"), ANSWERS)
def test_a_short_answer_is_read_with_its_question(question, answer, content):
    (found,) = proposed(f"A: {question}", answer)
    assert (found.content, found.evidence) == (content, ("msg_1", "msg_2"))


@pytest.mark.parametrize(("question", "answer"), NO_ANSWERS)
def test_a_refusal_or_an_answer_to_something_else_is_none(question, answer):
    assert said(f"A: {question}", answer) == []


@pytest.mark.parametrize(("claim", "answer", "content"), CORRECTIONS)
def test_a_word_sets_right_what_the_assistant_said(claim, answer, content):
    (found,) = proposed(f"A: {claim}", answer)
    assert (found.memory_type, found.content) == ("correction", content)
    assert found.source_error is not None


def test_a_word_sets_right_what_the_user_said_before():
    _, mended = proposed("I live in Paris.", "Sorry, I meant Lyon.")
    assert (mended.content, mended.source_error) == (
        "The user lives in Lyon.",
        "The user lives in Paris.",
    )
    (mended,) = proposed("My flight lands at 6pm.", "scratch that, 8pm")
    assert mended.content == "The user's flight lands at 8pm."


def test_a_word_about_the_world_sets_nothing_right():
    assert said("A: The capital of Australia is Sydney.", "No, Canberra.") == []


def test_a_pronoun_means_the_one_who_was_named():
    assert said("My sister Maria lives in Rome. She is a dentist.") == [
        ("fact", "The user's sister Maria lives in Rome."),
        ("fact", "The user's sister Maria is a dentist."),
    ]
    assert said("What could I give my wife? She loves pottery.") == [
        ("fact", "The user's wife loves pottery.")
    ]


def test_a_pronoun_that_cannot_mean_them_says_nothing():
    assert said("My brother Tom lives in Rome. She is a dentist.") == [
        ("fact", "The user's brother Tom lives in Rome.")
    ]


def test_each_sentence_is_read_in_its_own_language():
    assert said("Actually I live in Hamburg. 我对花生过敏。") == [
        ("fact", "The user lives in Hamburg."),
        ("constraint", "用户对花生过敏"),
    ]
    assert said("我叫李雷。I work as a designer.") == [
        ("fact", "用户叫李雷"),
        ("fact", "The user works as a designer."),
    ]


def test_what_is_quoted_in_the_other_language_is_not_read():
    assert said("What does this mean? 我住在慕尼黑。") == []
    assert said("Translate this into English. 我住在慕尼黑。") == []
    assert said("帮我翻译：I live in Munich.") == []
