"""What the keyless extractor proposes of messages, and how it says who, when and how sure."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.language.keyless.extractor import (
    AMONG_PEOPLE,
    FLOORS,
    RulesExtractor,
    by_language,
    propose,
)
from app.language.keyless.kinds import expected_valid_days
from app.language.llm.extractor import ConversationTurn, ExtractionRequest, Proposed

SAID_AT = datetime(2025, 5, 3, 10, tzinfo=UTC)
EVERY_SCOPE = ("user", "session", "project")


def turns(*said: str) -> list[ConversationTurn]:
    """Messages in order; those that begin with `A: ` are the assistant's."""
    return [
        ConversationTurn(
            f"m{number}",
            "assistant" if each.startswith("A: ") else "user",
            each.removeprefix("A: "),
            SAID_AT,
        )
        for number, each in enumerate(said)
    ]


def read(*said: str) -> list[Proposed]:
    return propose(ExtractionRequest(turns(*said), scopes=EVERY_SCOPE))


def only(*said: str) -> Proposed:
    (found,) = read(*said)
    return found


def test_statement_is_in_the_words_of_the_speaker():
    found = only("By the way, I moved to Lisbon last month, can you recommend a bakery?")
    assert found.content == "I moved to Lisbon last month"
    assert found.quoted
    assert found.evidence == ("m0",)
    assert found.valid_from == datetime(2025, 4, 1, tzinfo=UTC)
    assert (found.memory_type, found.attribute) == ("fact", "user.residence")


def test_third_person_is_kept_as_it_is_and_is_no_quotation():
    found = only("The user likes programming.")
    assert (found.content, found.quoted) == ("The user likes programming.", False)


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "How do I center a div?",
        "I live in",
        "I'm hungry",
        "Thanks, that makes sense!",
        "If I had two dice, what is the probability of two sixes?",
        "Translate into Spanish: I have lived in Chicago for ten years.",
        "I want to make sure my answer is right, is it?",
        "```\nI live in Rome and I have a dog\n```",
        "# I love pizza",
        'print("My name is Alice")',
        "User: I like skiing\nAssistant: Noted.",
    ],
)
def test_what_tells_nothing_is_not_proposed(text):
    assert read(text) == []


def test_what_is_asked_to_be_remembered_is_certain():
    assert only("Remember that my locker is number 12.").confidence == 1.0
    assert only("Please note that I park on level 3.").content == "I park on level 3."


def test_confidence_is_at_least_the_floor():
    said = "I think I live in Rome. I moved there in March 2021 with my wife. I like it. Maybe."
    assert all(FLOORS["english"] <= each.confidence <= 1 for each in read(said))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Always answer in metric units", "constraint"),
        ("Never suggest pork", "constraint"),
        ("Call me Ana", "preference"),
        ("I love hiking", "preference"),
        ("I decided to sell my car in May", "decision"),
        ("I'm planning to travel to Japan in March", "goal"),
        ("I go running every morning", "habit"),
        ("I run 10 km a week", "habit"),
        ("I'm in Paris for a week", "fact"),
        ("I speak French", "skill"),
        ("I broke my wrist in Zell am See last week", "event"),
        ("My daughter Mia is six years old", "fact"),
    ],
)
def test_kind_is_told_by_the_words(text, kind):
    assert only(text).memory_type == kind


def test_times_are_not_cut_and_nothing_is_lost():
    found = read("My train leaves at 12:30 and my daughter Mia takes swimming lessons at 7:40.")
    assert [each.content for each in found] == [
        "My train leaves at 12:30",
        "my daughter Mia takes swimming lessons at 7:40.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I told my boss I am sick, but I am not.",
        "I told my wife that I am vegan but I'm not really.",
        "I told everyone I have a girlfriend, though that isn't true.",
        "我跟老板说我病了，其实没有",
        "我告诉大家我三十岁，但其实不是",
        "我会说法语，但是不是很流利",
    ],
)
def test_what_is_taken_back_in_its_sentence_is_never_told_without(text):
    assert only(text).content == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("In case you forgot: I can't eat pork.", ["I can't eat pork."]),
        ("If you didn't know, I'm allergic to nuts.", ["I'm allergic to nuts."]),
        ("If you don't know what I mean, I'm a nurse.", []),
        ("In case you forgot your umbrella, I have one.", []),
        ("万一你忘了，我不能吃猪肉。", ["我不能吃猪肉"]),
        ("如果你不知道的话，我是一名护士。", ["我是一名护士"]),
        ("如果你不知道答案，我是一名护士。", []),
    ],
)
def test_what_is_said_in_case_it_is_not_known_is_no_supposition(text, told):
    assert [each.content for each in read(text)] == told


@pytest.mark.parametrize(
    "text",
    [
        "Can you recommend a dentist in Lyon, where I live since 2022?",
        "“我对坚果过敏”用意大利语怎么说？",
        "我对坚果过敏用意大利语怎么说？",
    ],
)
def test_rest_of_a_question_that_tells_nothing_alone_is_not_proposed(text):
    assert read(text) == []


def test_two_plain_sentences_are_two_statements():
    found = read("My brother Tom lives in Berlin. I work at Siemens.")
    assert [each.content for each in found] == [
        "My brother Tom lives in Berlin.",
        "I work at Siemens.",
    ]


def test_less_sure_clause_is_kept_with_the_clause_before_it_only_if_that_tells_something():
    found = read("My train leaves at 12:30 and my daughter Mia takes swimming lessons at 7:40.")
    alone = read("I feel like it and my daughter Mia takes swimming lessons at 7:40 every Friday.")
    assert found[0].content.startswith("My train leaves")
    assert alone[0].content.startswith("my daughter Mia")


def test_sentence_that_explains_a_pronoun_is_kept_once():
    found = read("My sister Klara lives in Verona. She is getting married in Rome on 12 September.")
    assert [each.content for each in found] == [
        "My sister Klara lives in Verona. She is getting married in Rome on 12 September."
    ]


def test_correction_names_what_was_wrong():
    found = only("Actually, our deadline is 22 May, not 15 May.")
    assert (found.memory_type, found.source_error) == ("correction", "15 May")
    found = only("A: Your project uses Go.", "That's wrong, our project uses Rust.")
    assert (found.content, found.source_error) == ("our project uses Rust.", "Your project uses Go")


def test_denial_of_something_else_mends_nothing():
    found = only("A: The weather is nice today.", "No, I live in Turin.")
    assert found.source_error is None


def test_plain_retraction_says_so():
    assert only("I no longer work at the bank.").retracts
    assert only("I don't eat meat any more.").retracts
    assert only("Forget that I have a car.").retracts
    assert not only("I work at a bank in Turin.").retracts


def test_what_a_question_takes_for_granted_is_no_news_and_takes_nothing_back():
    asked = only("Do you remember that I moved to Bern in May?")
    assert (asked.content, asked.presupposed) == ("I moved to Bern in May", True)
    told = only("I moved to Bern in May.")
    assert not told.presupposed
    assert (bool(told.relations), asked.relations) == (True, ()), "it ends nothing in the graph"
    assert not any(each.retracts for each in read("Do you know that I no longer work at the bank?"))


def test_plan_without_anything_concrete_holds_for_a_month():
    assert expected_valid_days("goal", "I want to learn the guitar", SAID_AT) == 30
    assert expected_valid_days("goal", "I want to learn Spanish", SAID_AT) is None
    assert expected_valid_days("goal", "I want to move next month", SAID_AT) is None
    assert expected_valid_days("fact", "I have a guitar", SAID_AT) is None
    assert only("I'm going to Japan on 3 March").expected_valid_days is None


def test_project_is_the_scope_where_it_is_allowed():
    text = "Our project uses Postgres 16"
    assert only(text).scope == "project"
    (found,) = propose(ExtractionRequest(turns(text), scopes=("user", "session")))
    assert found.scope == "user"


def test_assistant_and_context_are_no_evidence():
    earlier = ConversationTurn("m9", "user", "I live in Oslo with two cats", SAID_AT, context=True)
    request = ExtractionRequest([earlier, *turns("A: I am a model and live in Rome.", "ok")])
    assert propose(request) == []


def test_what_is_known_or_said_twice_is_no_news():
    text = "I live in Oslo with my two cats"
    assert len(read(text, text.upper() + ".")) == 1
    assert propose(ExtractionRequest(turns(text), recalled=[text + "."])) == []


def test_clause_without_a_comma_is_read_up_to_a_thousand_characters():
    text = "I live in Rome with my wife Petra" + " and so on" * 96
    assert len(text) == 993
    assert len(read(text)) == 1
    assert len(read(text + " and so")) == 1
    assert read(text + " and so on") == []


def test_text_is_parted_where_the_language_changes():
    parts = list(by_language("I live in Rome. My cat is old."))
    assert parts == [("english", "I live in Rome. My cat is old.")]


async def test_extractor_answers_the_same_and_long_turns_too():
    extractor = RulesExtractor()
    text = (
        "I live in Rome with my wife Petra. " + "so it goes. " * 500 + "I work at Acme as a cook."
    )
    request = ExtractionRequest(turns(text))
    first = await extractor.extract(request)
    assert [each.content for each in first.proposals] == [
        "I live in Rome with my wife Petra.",
        "I work at Acme as a cook.",
    ]
    assert await extractor.extract(request) == first


async def test_ended_session_is_summarised_by_what_was_decided():
    request = ExtractionRequest(turns("I decided to sell my car in May.", "I love hiking."))
    (found,) = (await RulesExtractor().summarise(request)).proposals
    assert found.memory_type == "experience"
    assert found.content == "In this session the user said: I decided to sell my car in May."
    assert (await RulesExtractor().summarise(ExtractionRequest(turns("hello")))).proposals == ()


def handed_over(*said: str) -> list[str]:
    request = ExtractionRequest(turns(*said), scopes=EVERY_SCOPE, handed_over=True)
    return [each.content for each in propose(request)]


@pytest.mark.parametrize("text", ["I have asthma.", "I wear glasses.", "我有耳鸣。"])
def test_one_plain_statement_that_is_handed_over_is_more_likely_meant_to_be_kept(text: str):
    assert read(text) == []
    assert handed_over(text) == [text.rstrip("。")]


@pytest.mark.parametrize(
    "text",
    [
        "I love hiking.",
        "I am allergic to peanuts.",
        "My wife is a doctor.",
        "I prefer tea.",
        "I'm a nurse.",
    ],
)
def test_a_plain_statement_that_is_the_whole_message_is_kept(text: str):
    assert [each.content for each in read(text)] == [text]


@pytest.mark.parametrize(
    "text", ["How are you?", "Thanks!", "I am tired.", "I'll try that.", "今天天气怎么样？"]
)
def test_not_everything_that_is_handed_over_is_kept(text: str):
    assert handed_over(text) == []


def test_of_a_longer_text_each_clause_is_as_likely_as_ever():
    text = "I'm diabetic. I ate an apple and then I went for a walk with nobody. It was nice."
    assert handed_over(text) == [each.content for each in read(text)]


def test_several_named_people_are_read_with_a_floor_of_their_own():
    said = turns(
        "Hi Ben, how are you? Good to see you here again!",
        "That was a day! I joined a gym last week! See you soon, take care!",
    )
    alone = propose(ExtractionRequest(said, scopes=EVERY_SCOPE))
    named = [replace(each, name=name) for each, name in zip(said, ("Ana", "Ben"), strict=True)]
    among = propose(ExtractionRequest(named, scopes=EVERY_SCOPE))
    assert alone == []
    assert [each.content for each in among] == ["I joined a gym last week!"]
    assert AMONG_PEOPLE <= among[0].confidence < FLOORS["english"]
    # Messages without a name are nobody else's.
    half_named = [replace(said[0], name="Ana"), said[1]]
    assert propose(ExtractionRequest(half_named, scopes=EVERY_SCOPE)) == []


def test_clause_that_begins_like_what_is_put_in_front_of_another_stays():
    told = read(
        "I work at Ford\nI work at Fordham University as a teacher, but I am leaving in May."
    )
    assert [each.content for each in told] == [
        "I work at Ford",
        "I work at Fordham University as a teacher, but I am leaving in May.",
    ]


def test_clause_behind_a_long_one_is_kept_alone():
    long = "I have worked as a nurse" + " with the doctors and the people of the ward" * 50
    assert only(f"{long}, and I prefer tea to coffee.").content == "I prefer tea to coffee."
