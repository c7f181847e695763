"""What a demanding user found: sentences that were remembered wrongly, or not at all."""

import pytest
from rules_support import proposed, said

TITLES = [
    ('my favorite song is "Call Me Maybe".', 'The user\'s favorite song is "Call Me Maybe".'),
    ('I love the book "I, Robot".', 'The user loves the book "I, Robot".'),
    ("My favourite film is “You and Me”.", "The user's favourite film is “You and Me”."),
]
UNCONFIRMED = [
    ("You are allergic to gluten.", "thanks, bye"),
    ("You live in Madrid. Is that wrong?", "yes"),
    ("You live in Madrid. Should I book the train?", "yes please"),
    ("You live in Madrid? Do you work at Google?", "Yes, but I quit."),
    ("你住在马德里。要我订火车票吗？", "是的"),
]
CONFIRMED = [
    ("You live in Madrid. Is that right?", "Yes, exactly.", "The user lives in Madrid."),
    ("You like tea. Do you live in Madrid?", "yes", "The user lives in Madrid."),
    ("You live in Madrid.", "That's right, thanks", "The user lives in Madrid."),
    ("你住在北京。对吗？", "对", "用户住在北京"),
]
MENDED = [
    (["No, I meant I live in Bern."], "The user lives in Bern.", None),
    (["C: I live in Berlin.", "No, I meant I live in Bern."], "The user lives in Bern.", "Berlin"),
    (
        ["C: I live in Berlin.", "Sorry, I meant to say Bern, not Berlin."],
        "The user lives in Bern.",
        "Berlin",
    ),
    (["C: I live in Berlin.", "Actually no, I meant Augsburg."],
     "The user lives in Augsburg.", "Berlin"),
    (["I'm 30. Sorry, 31."], "The user is 31.", "30"),
    (["My birthday is May 3rd. Sorry, May 4th."], "The user's birthday is May 4th.", "3rd"),
    (["I prefer tea, no wait, coffee."], "The user prefers coffee.", "tea"),
    (["I live in Berlin, no wait, Bern."], "The user lives in Bern.", "Berlin"),
]  # fmt: skip
NOTHING = [
    "I am Batman.",
    "I live in Berlin. Just kidding!",
    "As a customer, I want a refund.",
    "As a developer, I want to see the logs.",
    "I work as hard as I can.",
    "I live in fear.",
    "I hate myself.",
    "From: Bob <bob@example.com>\nSubject: My move\n\nI live in Berlin and I love tea.",
    "I don't use that flag.",
    "I used to be a smoker but I quit in 2020.",
]
GRAMMAR = [
    ("I never understood jazz.", "The user never understood jazz."),
    ("Since, I'm diabetic, sugar is out.", "The user is diabetic."),
    ("I married to Elena.", "The user married Elena."),
]


@pytest.mark.parametrize(("text", "content"), TITLES)
def test_a_quoted_title_stays_as_it_was_written(text, content):
    assert [each for _, each in said(text)] == [content]


def test_what_somebody_else_says_in_quotes_is_not_the_users():
    assert said('My boss said "I live in Berlin".') == []


@pytest.mark.parametrize(("claim", "answer"), UNCONFIRMED)
def test_what_was_not_asked_is_not_confirmed(claim, answer):
    assert said(f"A: {claim}", answer) == []


@pytest.mark.parametrize(("claim", "answer", "content"), CONFIRMED)
def test_a_yes_confirms_what_was_asked_last(claim, answer, content):
    assert [each for _, each in said(f"A: {claim}", answer)] == [content]


@pytest.mark.parametrize(("turns", "content", "wrong"), MENDED)
def test_only_the_value_that_was_meant_is_proposed(turns, content, wrong):
    (found,) = proposed(*turns)
    assert (found.memory_type, found.content) == ("correction", content)
    assert found.source_error is None if wrong is None else wrong in found.source_error


def test_what_is_to_be_forgotten_is_taken_back():
    (found,) = proposed("Please forget that I live in Berlin.")
    assert found.retracts


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_statement_of_the_user_is_left_alone(text):
    assert said(text) == []


@pytest.mark.parametrize(("text", "content"), GRAMMAR)
def test_what_is_said_of_the_user_is_grammatical(text, content):
    assert [each for _, each in said(text)] == [content]


def test_each_clause_is_read_in_its_own_language():
    found = [each for _, each in said("I live in 上海 and 我喜欢喝绿茶")]
    assert found == ["The user lives in 上海.", "用户喜欢喝绿茶"]
