"""The judge of keyless extraction, and the sets that it judges by and that weights come from."""

import json
from collections import Counter
from pathlib import Path

import pytest

from app.language.llm.extractor import MEMORY_TYPES
from benchmarks.extraction_labels import HALVES, LANGUAGES, Expectation, path_of, read
from benchmarks.extraction_matching import covers, is_right, is_same, states, tokens
from benchmarks.keyless_training import TRAINING_SET
from benchmarks.unseen_labels import LABELS, read_marked, referred

FILES = [path_of(language, half) for language in LANGUAGES for half in HALVES]
TRAINING = sorted(TRAINING_SET.glob("*.jsonl"))


def fact(must=(), any_of=()):
    return Expectation("fact", ("fact",), must=must, any_of=any_of)


@pytest.mark.parametrize(
    ("statement", "wanted", "expected"),
    [
        ("I like Green Tea.", fact(("green tea",)), True),
        ("I like black tea.", fact(("green tea",)), False),
        ("b and a", fact(("a", "b")), True),
        ("only a", fact(("a", "b")), False),
        ("我30岁", fact(any_of=("三十", "30")), True),
        ("我31岁", fact(any_of=("三十", "30")), False),
    ],
)
def test_statement_states_a_labelled_fact_by_its_words(statement, wanted, expected):
    assert states(statement, wanted) is expected


def test_four_fifths_of_a_quote_state_it():
    assert covers("Hello, a b c d.", "A B C D E")
    assert not covers("a b c", "a b c d e")
    assert covers("我住在上海浦", "我住在上海")


def test_statement_is_right_by_a_quote_it_covers_or_is_mostly_made_of():
    assert is_right("so a b c and much more than that", ["a b c"])
    assert is_right("a b c", ["a b x y z c w"])
    assert is_right("a b c d e", ["a b c x y z"])
    assert not is_right("a b d e f", ["a b c x y z"])
    assert not is_right("a", [])


def test_two_clauses_are_the_same_with_four_fifths_of_their_words():
    assert is_same("I live in Rome.", "and I live in Rome")
    assert not is_same("I live in Rome", "I live in Rome with my two small cats")
    assert not is_same("I live in Rome with my two small cats", "I live in Rome")


@pytest.mark.parametrize("path", TRAINING, ids=lambda path: path.stem)
def test_right_clauses_of_training_lines_were_said_and_no_line_occurs_twice(path):
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        assert set(row) == {"text", "before", "right"}
        assert all(each.strip() and tokens(each) <= tokens(row["text"]) for each in row["right"])
    lines = Counter((row["before"], row["text"]) for row in rows)
    assert [line for line, times in lines.items() if times > 1] == []


def test_labels_of_others_texts_hold_places_and_no_text(tmp_path: Path):
    marked = {
        "set": "s", "half": "dev", "conversation": "c", "message": "m",
        "facts": [{"quote": "in Rome", "kind": "fact", "date": None, "attribute": None}],
    }  # fmt: skip
    row = referred(marked, "I live in Rome.")
    assert row["facts"] == [{"start": 7, "end": 14, "kind": "fact"}]
    path = tmp_path / "s_dev.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (read_back,) = read_marked(path, {("c", "m"): (None, "I live in Rome.")})
    assert read_back.quotes == ("in Rome",)
    with pytest.raises(ValueError, match="substring"):
        referred(marked, "I live in Bonn.")
    with pytest.raises(KeyError):
        read_marked(path, {})
    for each in LABELS.glob("*.jsonl"):
        assert '"quote"' not in each.read_text(encoding="utf-8")


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
