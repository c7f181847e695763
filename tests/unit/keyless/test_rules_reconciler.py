"""What a new statement does to one that is remembered."""

from datetime import UTC, datetime

import pytest

from app.language.keyless.reconciler import RulesReconciler, decide
from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import Neighbour, ReconcileQuestion


def question(content, *neighbours, kind="fact", **more):
    return ReconcileQuestion(Proposed(content, kind, 0.95, ("msg_1",), **more), neighbours)


def near(content, memory_id="mem_1", kind="fact", similarity=0.7, **more):
    return Neighbour(memory_id, content, kind, 1.0, similarity, **more)


DECIDED = [
    ("The user lives in Munich.", "The user lives in Munich", "NONE"),
    ("The user lives in Munich.", "the user  resides in munich.", "NONE"),
    ("The user lives in Munich.", "The user lives in Berlin.", "SUPERSEDE"),
    ("The user lives in Munich.", "Lives in Berlin", "SUPERSEDE"),
    ("The user moved to Munich.", "The user resides in Berlin.", "SUPERSEDE"),
    ("The user lives in Munich-Schwabing.", "The user lives in Munich.", "UPDATE"),
    ("The user lives in Munich.", "The user lives in Munich-Schwabing.", "NONE"),
    ("The user does not like coffee any more.", "The user likes coffee.", "SUPERSEDE"),
    ("The user hates coffee.", "The user likes coffee.", "SUPERSEDE"),
    ("The user hates coffee.", "The user likes tea.", "ADD"),
    ("The user likes tea.", "The user likes coffee.", "ADD"),
    ("The user's sister lives in Paris.", "The user lives in Rome.", "ADD"),
    ("The user plays tennis with Ana on Sundays.", "The user plays tennis.", "UPDATE"),
    ("The user plays tennis.", "The user plays tennis with Ana on Sundays.", "NONE"),
    ("The user's favourite colour is teal.", "The user's favorite color is red.", "SUPERSEDE"),
    ("用户住在慕尼黑", "用户住在柏林", "SUPERSEDE"),
    ("用户搬到慕尼黑了", "住在柏林", "SUPERSEDE"),
    ("用户住在慕尼黑施瓦宾", "用户住在慕尼黑", "UPDATE"),
    ("用户不喜欢咖啡", "用户喜欢喝咖啡", "SUPERSEDE"),
    ("用户喜欢茶", "用户喜欢咖啡", "ADD"),
    ("用户妹妹在伦敦工作", "用户住在北京", "ADD"),
]


@pytest.mark.parametrize(("new", "old", "event"), DECIDED)
def test_a_statement_meets_another(new, old, event):
    decision = decide(question(new, near(old)))
    assert decision.event == event
    assert decision.memory_ids == (() if event == "ADD" else ("mem_1",))
    assert decision.content == (new if event == "UPDATE" else None)
    assert decision.reason


def test_an_attribute_is_compared_however_far_apart_the_sentences_are():
    far = near("The user resides in Berlin.", similarity=0.05)
    assert decide(question("The user lives in Munich.", far)).event == "SUPERSEDE"


def test_a_wish_gives_no_attribute():
    old = near("The user works as a baker.")
    decision = decide(question("The user wants to work as a pilot.", old, kind="goal"))
    assert decision.event == "ADD"


def test_other_words_for_the_same_count_only_when_near():
    old = near("The user likes coffee.", kind="preference", similarity=0.79)
    assert decide(question("The user is fond of coffee.", old, kind="preference")).event == "ADD"
    for each in (
        near("The user likes coffee.", kind="preference", similarity=0.8),
        near("The user likes coffee.", kind="preference", possible_duplicate=True),
    ):
        assert decide(question("The user enjoys coffee.", each, kind="preference")).event == "NONE"


RETRACTED = [
    ("The user does not work at Siemens anymore.", "The user works at Siemens.", "DELETE"),
    ("The user does not work at Siemens anymore.", "The user works at Bosch.", "NONE"),
    ("The user no longer has a dog.", "The user has a dog.", "DELETE"),
    ("The user no longer has a dog.", "The user has a cat.", "NONE"),
    ("用户不再养狗了", "用户养了一只狗", "DELETE"),
    ("用户不吃素了", "用户吃素", "DELETE"),
]


@pytest.mark.parametrize(("new", "old", "event"), RETRACTED)
def test_what_holds_no_longer_deletes_what_said_so(new, old, event):
    assert decide(question(new, near(old), retracts=True)).event == event


def test_nothing_to_retract_is_nothing():
    assert decide(question("The user no longer has a dog.", retracts=True)).event == "NONE"


def test_a_correction_replaces_the_mistake_and_not_its_neighbour():
    decision = decide(
        question(
            "The user has a meeting with Tom every Thursday.",
            near("The user has a meeting with Ada every Monday.", "mem_1"),
            near("The user has a meeting with Tom every Friday.", "mem_2"),
            kind="correction",
            source_error="The user has a meeting with Tom every Friday.",
        )
    )
    assert (decision.event, decision.memory_ids) == ("SUPERSEDE", ("mem_2",))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The user lives in Munich.", "The user lives in Berlin."),
        ("The user lives in Munich-Schwabing.", "The user lives in Munich."),
        ("The user hates coffee.", "The user likes coffee."),
        ("The user plays tennis on Sundays.", "The user plays tennis."),
    ],
)
def test_what_is_protected_stays_and_the_new_stands_beside_it(new, old):
    assert decide(question(new, near(old, protected=True))).event == "ADD"


def test_what_is_protected_may_be_repeated_and_is_not_taken_back():
    same = near("The user lives in Munich.", protected=True)
    assert decide(question("The user lives in Munich.", same)).event == "NONE"
    kept = near("The user has a dog.", protected=True)
    assert decide(question("The user has no dog.", kept, retracts=True)).event == "NONE"


def test_what_held_before_stands_beside_what_holds():
    old = near("The user lives in Berlin.", valid_from=datetime(2020, 1, 1, tzinfo=UTC))
    earlier = question(
        "The user lived in Rome.", old, valid_from=datetime(2019, 12, 31, tzinfo=UTC)
    )
    later = question("The user lives in Rome.", old, valid_from=datetime(2020, 1, 1, tzinfo=UTC))
    assert decide(earlier).event == "ADD"
    assert decide(later).event == "SUPERSEDE"


def test_what_has_ended_is_not_replaced():
    old = near("The user lives in Berlin.", valid_to=datetime(2020, 1, 1, tzinfo=UTC))
    assert decide(question("The user lives in Munich.", old)).event == "ADD"


async def test_every_question_has_its_decision_in_order():
    reconciler = RulesReconciler()
    answer = await reconciler.reconcile(
        [
            question("The user likes tea."),
            question("The user lives in Munich.", near("The user lives in Berlin.")),
        ]
    )
    assert [each.event for each in answer.decisions] == ["ADD", "SUPERSEDE"]
    assert answer.use.calls == 0
    assert (reconciler.name, reconciler.model) == ("rules/1", None)
