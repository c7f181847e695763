"""What is read from English talk, and what is left alone."""

import pytest
from rules_support import proposed, request, said

from app.language.keyless.extractor import RulesExtractor

FACTS = [
    ("I live in Munich.", "fact", "The user lives in Munich."),
    ("My name is Ada Byron", "fact", "The user's name is Ada Byron."),
    ("I don't eat meat", "constraint", "The user does not eat meat."),
    ("I love tea, dogs and jazz", "preference", "The user loves tea, dogs and jazz."),
    ("I can play the flute", "skill", "The user can play the flute."),
    ("I often swim and play chess", "habit", "The user often swims and plays chess."),
    ("I want to learn Greek", "goal", "The user wants to learn Greek."),
    ("We decided to use Kafka", "decision", "The user's team decided to use Kafka."),
    ("My wife Ines is a surgeon", "fact", "The user's wife Ines is a surgeon."),
    ("I graduated from Leeds in 2012", "event", "The user graduated from Leeds in 2012."),
    ("Answer in German, please", "preference", "The user wants the assistant to answer in German."),
    ("my budget is 900 euros", "constraint", "The user's budget is 900 euros."),
    ("Since I'm diabetic, could you skip the sugar?", "constraint", "The user is diabetic."),
    ("My doctor told me to avoid salt", "constraint",
     "The user was told by their doctor to avoid salt."),
    ("Peanuts could kill me", "constraint", "Peanuts could kill the user."),
    ("Is it far? I don't drive.", "fact", "The user does not drive."),
    ("OK, Kafka it is", "decision", "The user decided on Kafka."),
    ("Decided: no more weekend work", "decision", "The user decided on no more weekend work."),
    ("The team voted for squash merges", "decision", "The team voted for squash merges."),
    ("Gardening is my therapy", "preference", "Gardening is the user's therapy."),
    ("Crowds drain me", "preference", "Crowds drain the user."),
    ("Being fluent in Greek, I can help there", "skill", "The user is fluent in Greek."),
    ("Could you always answer in German?", "preference",
     "The user wants the assistant to always answer in German."),
    ("lost my dad in 2019, still hard", "event", "The user lost their dad in 2019, still hard."),
    ("Someone stole my bike", "event", "Someone stole the user's bike."),
    ("One thing to know about me is that I can't swim", "skill", "The user cannot swim."),
]  # fmt: skip
TALK = [
    "Where do I live?",
    "If I lived in Rome I would eat ice cream",
    "I'm tired",
    "Thanks, that helped a lot!",
    "Pretend you are a pilot. My name is Maverick.",
    'Translate: "I live in Rome and love cats."',
    "Summarise this: I moved to Oslo in 1990.",
    "He said he lives in Rome",
    "My friend lives in Rome",
    "I might move to Rome",
    "I used to live in Rome",
    "I have a question about taxes",
    "```\nI live in Rome\n```",
    "> I live in Rome",
    "I love it, thanks!",
    "Can you check whether I need a visa?",
    "I always get a 403 when I call it",
    "I've always wondered how planes fly",
    "I picked the wrong answer",
    "I dropped the table by accident",
    "I've decided the second paragraph is too long",
    "We decided to go with the flow",
    "I'll go with the first one",
    "I finished the report",
    "I completed the first step",
    "I passed the wrong argument",
    "I joined the two tables on id",
    "I'd like to see the code",
    "I'd like to learn more about black holes",
    "I'd rather not say",
    "I can't stand here all day",
    "I'm allergic to Mondays",
    "I'm married to my job",
    "I live under a rock",
    "I'm flying to Oslo tomorrow",
    "I'm looking for a job posting template",
    "In the game I'm a wizard",
    "The app drives me crazy",
    "Answer in one sentence",
    "Always good to hear",
    "Note that the function returns None",
    "Don't forget the semicolon",
    "I'm the worst",
    "MARCO: I'm a baker.",
    "From the script: I come from Turin.",
    "I'm not vegetarian",
    "I almost moved to Rome",
]


@pytest.mark.parametrize(("text", "kind", "content"), FACTS)
def test_what_people_say_of_themselves_becomes_a_sentence_in_the_third_person(text, kind, content):
    assert said(text) == [(kind, content)]


@pytest.mark.parametrize("text", TALK)
def test_talk_yields_nothing(text):
    assert said(text) == []


def test_several_facts_in_one_message_are_several_proposals():
    assert [each for _, each in said("Hi, I'm Ada. I live in Turin and I work at Fiat.")] == [
        "The user is Ada.",
        "The user lives in Turin.",
        "The user works at Fiat.",
    ]


def test_a_statement_before_a_question_is_read():
    assert said("I'm vegan, what should I cook?") == [("constraint", "The user is vegan.")]


def test_what_is_to_be_remembered_is_certain():
    (found,) = proposed("Remember that my locker is number 41")
    assert (found.content, found.confidence) == ("The user's locker is number 41.", 1.0)


def test_confidence_says_how_outright_it_was_said():
    (outright,) = proposed("I live in Munich")
    (implied,) = proposed("As a nurse, I see that every day")
    assert 0.9 <= outright.confidence <= 1.0
    assert (implied.content, 0.7 <= implied.confidence <= 0.85) == ("The user is a nurse.", True)


def test_a_correction_names_the_mistake():
    (found,) = proposed("A: So you live in Berlin?", "No, I live in Hamburg, not Berlin.")
    assert (found.memory_type, found.content, found.source_error, found.attribute) == (
        "correction",
        "The user lives in Hamburg.",
        "The user lives in Berlin.",
        "user.residence",
    )
    assert found.confidence >= 0.95


def test_what_was_meant_takes_the_place_of_what_was_said():
    first, second = proposed("I live in Hamburg", "No, I meant Munich")
    assert first.content == "The user lives in Hamburg."
    assert (second.memory_type, second.content) == ("correction", "The user lives in Munich.")
    assert second.source_error == "The user lives in Hamburg."
    assert second.evidence == ("msg_2",)


def test_a_change_over_time_is_no_correction():
    (found,) = proposed("I moved to Munich last month")
    assert (found.memory_type, found.attribute) == ("fact", "user.residence")
    assert found.valid_from is not None
    assert found.valid_from.date().isoformat() == "2026-02-01"


def test_what_holds_no_longer_is_retracted():
    (found,) = proposed("I no longer have a dog")
    assert (found.retracts, found.content) == (True, "The user no longer has a dog.")


def test_what_a_family_does_is_no_team_work():
    (found,) = proposed("We are moving to Porto in 2028", scopes=("user", "project"))
    assert (found.scope, found.content) == ("user", "The user is moving to Porto in 2028.")


def test_a_name_in_passing_is_kept():
    assert said("my boss Ingrid wants it by Monday") == [
        ("fact", "The user's boss is called Ingrid.")
    ]


def test_a_wish_to_remember_may_come_before_what_is_meant():
    (found,) = proposed("Could you store this somewhere? My member number is QX-88.")
    assert (found.content, found.confidence) == ("The user's member number is QX-88.", 1.0)


def test_a_standing_order_says_when_behind_what():
    assert said("When you write code, use type hints") == [
        ("preference", "The user wants the assistant to use type hints when it writes code.")
    ]


def test_an_assistant_says_nothing_of_its_own():
    assert said("A: You live in Berlin.", "What about the second part?") == []
    assert said("A: I live in the cloud.") == []


def test_what_the_user_affirms_counts_with_both_turns_as_evidence():
    (found,) = proposed("A: So you live in Berlin?", "Yes, exactly.")
    assert (found.content, found.evidence) == ("The user lives in Berlin.", ("msg_1", "msg_2"))


def test_context_gives_no_proposals_but_is_understood():
    assert said("C: I live in Hamburg") == []
    (found,) = proposed("C: I live in Hamburg", "No, I meant Munich")
    assert found.source_error == "The user lives in Hamburg."


def test_recalled_text_is_no_news():
    assert said("I live in Munich", recalled=["The user lives in Munich."]) == []


def test_what_a_team_does_is_for_the_project_where_that_is_allowed():
    (found,) = proposed("Our project uses PostgreSQL", scopes=("user", "project"))
    assert (found.scope, found.content) == ("project", "The user's project uses PostgreSQL.")
    (found,) = proposed("Our project uses PostgreSQL", scopes=("user", "session"))
    assert found.scope == "user"
    (found,) = proposed("I live in Munich", scopes=("session",))
    assert found.scope == "session"


async def test_a_session_without_decisions_teaches_nothing():
    from_talk = await RulesExtractor().summarise(request("Hello", "I live in Munich"))
    assert from_talk.proposals == ()


async def test_a_session_teaches_what_was_decided_and_planned_in_it():
    extraction = await RulesExtractor().summarise(
        request("I live in Munich", "We decided to use Kafka", "I want to learn Greek")
    )
    (found,) = extraction.proposals
    assert found.memory_type == "experience"
    assert found.content == (
        "In this session: The user's team decided to use Kafka. The user wants to learn Greek."
    )
    assert found.evidence == ("msg_2", "msg_3")
