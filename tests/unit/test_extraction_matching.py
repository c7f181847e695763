"""The judge of keyless extraction, and the labelled set it judges by."""

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from app.language.llm.extractor import MEMORY_TYPES, Proposed
from benchmarks.extraction_labels import HALVES, LANGUAGES, Expectation, path_of, read
from benchmarks.extraction_matching import dated, match, states

FILES = [path_of(language, half) for language in LANGUAGES for half in HALVES]
TEA = Expectation("preference", ("preference",), must=("green tea",))
LIVES = Expectation("identity", ("fact",), must=("Munich",), attribute="user.residence")


def proposed(content, memory_type="fact", **more):
    return Proposed(content, memory_type, 0.9, ("m1",), **more)


@pytest.mark.parametrize(
    ("fact", "proposal", "expected"),
    [
        (TEA, proposed("The user likes Green Tea.", "preference"), True),
        (TEA, proposed("The user likes green tea.", "habit"), False),
        (TEA, proposed("The user likes black tea.", "preference"), False),
        (Expectation("habit", ("habit", "fact")), proposed("Runs.", "fact"), True),
        (Expectation("fact", ("fact",), ("a", "b")), proposed("only a"), False),
        (Expectation("fact", ("fact",), ("a", "b")), proposed("b and a"), True),
        (Expectation("fact", ("fact",), any_of=("三十", "30")), proposed("用户30岁"), True),
        (Expectation("fact", ("fact",), any_of=("三十", "30")), proposed("用户31岁"), False),
        (Expectation("fact", ("fact",), never=("not",)), proposed("does not"), False),
        (Expectation("fact", ("fact",), never=("not",)), proposed("does"), True),
        (LIVES, proposed("Not in Munich any more.", retracts=True), False),
        (Expectation("fact", ("fact",), retracts=True), proposed("Gone."), False),
        (Expectation("fact", ("fact",), retracts=True), proposed("Gone.", retracts=True), True),
        (Expectation("fact", ("fact",), retracts=None), proposed("Gone.", retracts=True), True),
        (Expectation("fact", ("fact",), retracts=None), proposed("Gone."), True),
    ],
)
def test_a_proposal_states_a_fact_by_its_type_and_its_words(fact, proposal, expected):
    assert states(proposal, fact) is expected


def test_one_proposal_is_one_fact_and_the_second_of_a_fact_is_surplus():
    first = proposed("The user likes green tea.", "preference")
    second = proposed("The user really likes green tea.", "preference")
    matched = match([TEA, TEA], [first])
    assert len(matched.pairs) == 1
    assert matched.missed == (TEA,)
    matched = match([TEA], [first, second])
    assert matched.pairs == ((TEA, first),)
    assert matched.surplus == (second,)


def test_two_equal_proposals_are_two():
    same = proposed("The user likes green tea.", "preference")
    matched = match([TEA], [same, same])
    assert len(matched.pairs) == len(matched.surplus) == 1


def test_the_most_particular_fact_chooses_first():
    sister = Expectation("relation", ("fact",), must=("sister",))
    munich = Expectation("relation", ("fact",), must=("sister", "Munich"))
    both = proposed("The user's sister lives in Munich.")
    named = proposed("The user's sister is Ana.")
    matched = match([sister, munich], [both, named])
    assert dict(matched.pairs) == {munich: both, sister: named}


def test_an_optional_fact_is_no_merit_and_no_mistake_and_chooses_last():
    aside = Expectation("fact", ("fact",), must=("Munich",), optional=True)
    home, again = proposed("Lives in Munich."), proposed("Is in Munich.")
    assert match([aside], []) == match([aside], [home])
    matched = match([aside, LIVES], [home, again])
    assert matched.pairs == ((LIVES, home),)
    assert matched.surplus == ()


def test_what_is_proposed_in_talk_without_facts_is_surplus():
    proposal = proposed("The user lives in Munich.")
    assert match([], [proposal]).surplus == (proposal,)


@pytest.mark.parametrize(
    ("valid_from", "expected"),
    [
        (None, False),
        (datetime(2026, 3, 1, 23, 59, tzinfo=UTC), False),
        (datetime(2026, 3, 2, tzinfo=UTC), True),
        (datetime(2026, 3, 8, 23, 59, tzinfo=UTC), True),
        (datetime(2026, 3, 9, tzinfo=UTC), False),
        (datetime(2026, 3, 9, 1, tzinfo=timezone(timedelta(hours=2))), True),
    ],
)
def test_a_date_is_right_on_each_day_of_the_label(valid_from, expected):
    week = Expectation("event", ("event",), since=(date(2026, 3, 2), date(2026, 3, 8)))
    assert dated(proposed("Was in Rome.", "event", valid_from=valid_from), week) is expected


def test_a_date_without_a_label_is_not_judged():
    assert dated(proposed("Was in Rome.", valid_from=datetime(2020, 1, 1, tzinfo=UTC)), LIVES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_has_at_least_a_hundred_utterances_a_third_of_them_without_facts(path):
    utterances = read(path)
    assert len(utterances) >= 100
    assert 0.3 <= sum(not one.expected for one in utterances) / len(utterances) <= 0.4


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_label_can_be_met_and_is_about_words_that_were_said(path):
    for one in read(path):
        assert one.turns[-1].role == "user", one.id
        assert all(turn.content.strip() for turn in one.turns), one.id
        for fact in one.expected:
            assert set(fact.types) <= set(MEMORY_TYPES), one.id
            assert fact.must or fact.any_of, one.id
            assert fact.since is None or fact.since[0] <= fact.since[1], one.id
            said = " ".join(turn.content for turn in one.turns if turn.role == "user").casefold()
            assert all(word.casefold() in said for word in fact.must), (one.id, fact.must)


def test_no_id_and_no_utterance_occurs_twice_in_the_whole_set():
    everything = [one for path in FILES for one in read(path)]
    ids = Counter(one.id for one in everything)
    texts = Counter(one.turns[-1].content.casefold() for one in everything)
    assert [id_ for id_, times in ids.items() if times > 1] == []
    assert [text for text, times in texts.items() if times > 1] == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("half", HALVES)
def test_every_kind_that_the_issue_names_occurs_in_every_file(language, half):
    kinds = {fact.kind for one in read(path_of(language, half)) for fact in one.expected}
    assert kinds >= {
        "identity", "preference", "skill", "habit", "plan", "constraint", "decision", "relation",
        "correction", "remember", "event",
    }  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_line_has_the_documented_fields_and_no_other(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert list(row) == ["id", "turns", "said_at", "expect", "note"]
        for one in row["expect"]:
            assert set(one) - {"types", "not", "optional"} == {
                "kind", "memory_type", "must", "any", "attribute", "retracts", "valid_from",
            }  # fmt: skip
