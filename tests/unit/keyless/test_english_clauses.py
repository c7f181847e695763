"""Which words of an English message are a clause, and which are questions, requests or pasted."""

import pytest

from app.language.keyless.clauses import ASKED, LONGEST
from app.language.keyless.english_clauses import english_clauses


def contents(text: str, before: str | None = None) -> list[str]:
    return [each.content for each in english_clauses(text, before)]


def test_request_is_cut_out_of_a_sentence():
    assert contents("I run Flask 2.3 on port 5000, can you help me add a login?") == [
        "I run Flask 2.3 on port 5000"
    ]
    assert contents("I have 14 interviews so can you help me sort them") == ["I have 14 interviews"]


def test_fact_inside_a_question_is_rescued():
    assert contents("My partner David, 61, suggested a trust, should I?") == [
        "My partner David, 61, suggested a trust"
    ]
    assert contents("What should I pack, considering I've never been to Norway?") == [
        "I've never been to Norway"
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Do you remember that I moved to Bern in May?", ["I moved to Bern in May"]),
        (
            "Why is it refused, when I've paid 890 a month since 2017?",
            ["I've paid 890 a month since 2017"],
        ),
        ("What suits my supervisor, who retires in July?", ["my supervisor, who retires in July"]),
        ("How safe is the account we opened on 3 May?", ["the account we opened on 3 May"]),
        ("In case it matters I'm lactose intolerant", ["I'm lactose intolerant"]),
        (
            "Not sure if I said it: my stepson Al is here on Fridays",
            ["my stepson Al is here on Fridays"],
        ),
        (
            "Why would my landlord refuse it, when I've paid 890 a month since 2017?",
            ["I've paid 890 a month since 2017"],
        ),
        ("Did you know that my sister Anna is a vet?", ["my sister Anna is a vet"]),
    ],
)
def test_what_questions_and_requests_take_for_granted_is_told(text, told):
    assert contents(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "Who told you that I live in Berlin?",
        "Why do you say that I moved to Berlin last week?",
        "Can you pretend that I live in Paris?",
        "Should I tell them that I live in Rome?",
        "What makes you believe my wife is called Anna?",
        "Should I tell them that I am 45 years old?",
        "Do you think I'm allergic to nuts?",
        "Is it possible that I have celiac disease?",
        "Is it true that I was born in Berlin?",
        "Does it mean I have diabetes?",
        "What would change if I had three kids in Munich?",
        "What would you say to my boss, who retires in July?",
        "How do you say I am vegan in French?",
        "Translate 'I was born in Berlin in 1980' into German.",
        "Write a cover letter that says I have 10 years of experience at Google.",
        "Can you tell my sister Anna that I am in Rome?",
        "Do you remember my sister Anna?",
        "Do you remember what my name is?",
        "Do you know if I have three kids?",
        "If I win the lottery, I'll be a millionaire by 2027.",
        "Let's meet at 5 at my place.",
        "Can you plan my trip to Oslo, two days in June?",
        "Can you help me ensure I'm using it well, with a pool?",
        "Can you explain 'mine' as in 'how safe is the account we opened on 3 May'?",
    ],
)
def test_what_is_asked_supposed_or_attributed_is_not_told(text):
    assert contents(text) == []


def test_what_is_told_inside_a_question_is_not_put_behind_what_was_told_before_it():
    _, inside = english_clauses("I like tea, what suits my aunt, who is 57?", None)
    assert (inside.text, inside.aside) == ("my aunt, who is 57", "")
    assert inside.cues["inside"] == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "My knee has been hurting since I fell in October",
        "I was refused, even though I have no debts",
        "I've been learning Welsh so I can talk to my nanna",
        "My friend Kyle, who's 25, suggested a shop in Leeds",
        "I found the hut where my wife and I met",
        "Last week my friends and I went to Ghent",
        "I work for Kjellberg & Co. in Aarhus with Prof. Ames",
    ],
)
def test_what_belongs_together_is_not_cut(text):
    assert contents(text) == [text]


def test_what_follows_a_request_is_not_joined_to_what_was_told_before_it():
    assert contents("I have a deadline in June, can you help, since it improved my work") == [
        "I have a deadline in June",
        "since it improved my work",
    ]


def test_speaker_is_a_word_of_its_own():
    assert contents("Can you find a hotel, with four beds, in your opinion the best?") == []


@pytest.mark.parametrize(
    "text",
    [
        "How do I add a column?",
        "Can you write a poem about my dog?",
        "If I moved to Rome, I would need a car.",
        "Suppose I have two dice, I roll both.",
        "I'm not sure whether it works",
        "I was wondering if you could help me with that",
        "Is Oslo your favourite city, or do you have another?",
        "Here's what I have so far:\n```python\nI = 1\n```",
        "Thanks for the detailed explanation!",
        "",
        "?!",
    ],
)
def test_questions_requests_and_hypotheses_are_no_clauses(text):
    assert contents(text) == []


def test_each_thing_told_is_a_clause():
    assert contents("I'm 34 and I live in Leipzig, but my brother moved to Cork.") == [
        "I'm 34",
        "I live in Leipzig",
        "my brother moved to Cork.",
    ]


def test_two_subjects_are_not_cut():
    assert contents("Jonas and I live in Bern.") == ["Jonas and I live in Bern."]


def test_what_hangs_on_a_clause_stays_with_it():
    text = "I met Kim at Café Nord on 7 May, and she praised my essay."
    assert contents(text) == ["I met Kim at Café Nord on 7 May, and she praised my essay."]


def test_dropped_request_swallows_what_follows_until_somebody_tells_again():
    text = "Can you list hotels, with a pool, and a gym, since I swim every morning?"
    assert contents(text) == ["I swim every morning"]


def test_pronoun_gets_the_sentence_before_it():
    told = english_clauses("I have a sister, Mia. She is a vet.", None)
    assert [each.lead for each in told] == ["", "I have a sister, Mia."]
    assert told[1].content == "I have a sister, Mia. She is a vet."


def test_praise_is_no_lead():
    assert contents("That's great! It works.")[-1] == "It works."


def test_greetings_thanks_and_connectives_are_trimmed():
    assert contents("Hey Nate, I love baking!") == ["I love baking!"]
    assert contents("By the way, my name is Oskar.") == ["my name is Oskar."]
    assert contents("Thanks, Jo! But I moved, so") == ["I moved"]


def test_times_and_abbreviations_do_not_end_a_sentence():
    assert contents("I see Dr. Ames at 12:30 on May 3, 2024.") == [
        "I see Dr. Ames at 12:30 on May 3, 2024."
    ]


def test_rules_for_the_assistant_are_clauses():
    assert contents("Always use metric units when I ask for recipes.") == [
        "Always use metric units when I ask for recipes."
    ]
    assert contents("Please never suggest pork.") == ["Please never suggest pork."]


def test_what_is_asked_to_be_remembered_says_so():
    (clause,) = english_clauses("Remember that I park on level 3.", None)
    assert clause.content == "I park on level 3."
    assert clause.cues["asked"] == 1.0


def test_places_are_those_of_the_text():
    text = "Hi! By the way, I’m 34, and can you help me? ```x``` My cat is old."
    assert [text[each.start : each.end].strip(" ,") for each in english_clauses(text, None)] == [
        "I’m 34",
        "My cat is old.",
    ]


def test_long_turn_is_read_whole():
    text = "I like rain. " + "so it goes, " * 3_000 + "and I live in Rome."
    assert contents(text)[-1] == "I live in Rome."
    assert max(map(len, contents(text))) <= 520


@pytest.mark.parametrize("text", ["When I was younger.", "To further my understanding."])
def test_fragments_are_no_clauses(text):
    assert contents(text) == []


def test_opening_that_goes_on_is_no_fragment():
    assert contents("When I was nine I moved to Rome.") == ["When I was nine I moved to Rome."]
    assert contents("While in Rome, I met Ada.") == ["While in Rome, I met Ada."]


def test_clause_that_points_at_the_one_before_it_stays_with_it():
    text = "I'm writing a cookbook, and I want to send it to a publisher in May"
    assert contents(text) == [text]


def test_what_was_cut_off_leaves_no_loose_end():
    assert contents("I want to use my years in Quito, especially, can you help me?") == [
        "I want to use my years in Quito"
    ]
    assert contents("including the flat in Turin, which I sold") == []
    assert contents("Including my own bread, which I bake for my kids.") == []


def test_encouragement_is_not_asked_to_be_remembered():
    (clause,) = english_clauses("Don't forget, just do it!", None)
    assert ASKED not in clause.cues


def test_what_is_too_long_to_have_been_said_is_no_clause():
    said = f"I like {'a' * (LONGEST - 7)}"
    assert contents(said) == [said]
    assert contents(f"{said}aa") == []


def test_marks_and_conjunctions_at_the_end_are_left_out():
    assert contents("I like tea - -, and  ,,") == ["I like tea"]
    assert contents("I like tea, -, and coffee") == ["I like tea, -, and coffee"]
