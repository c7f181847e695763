"""Expressions that a text cannot match are left out, and no others."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text import secret_patterns
from app.language.text.injections import RULES, _whole
from app.language.text.lazy_pattern import PatternIndex, literals, needed_parts

RULE_PATTERNS = [_whole(pattern) for _, patterns in RULES for pattern in patterns]
FORMATS = [re.compile(one.pattern, one.flags) for _, one in secret_patterns.formats()]
INDEX = PatternIndex(RULE_PATTERNS, re.MULTILINE)


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("abc", {"abc"}),
        ("ab[cd]efg", {"efg"}),
        ("(?:red|blue) car", {" car"}),
        ("(?:red|blue|green)s", {"red", "blue", "green"}),
        ("(?:red|blue)?", set()),
        ("(?:red|b*)s", {"s"}),
        ("(?:red)+", {"red"}),
        ("(?:red)*", set()),
        ("(?=red)", set()),
        ("(?!red)b", {"b"}),
        ("(?i)red", set()),
        ("(?i:red)b", {"b"}),
        ("red|[a-z]", set()),
        (r"^\bred$", {"red"}),
        ("", set()),
    ],
)
def test_needed_parts_are_in_every_match(pattern: str, parts: set[str]) -> None:
    assert needed_parts(pattern) == parts


def test_a_pattern_that_ignores_case_by_its_flags_needs_nothing() -> None:
    assert needed_parts("red", re.IGNORECASE) == frozenset()


def test_index_keeps_the_order_and_what_may_match_anywhere() -> None:
    index = PatternIndex(["red", "[0-9]", "blue|red"])

    assert index.possible("a red door") == [0, 1, 2]
    assert index.possible("a blue door") == [1, 2]
    assert index.possible("a door") == [1]


@given(st.data())
def test_a_rule_that_matches_is_always_possible(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(range(len(RULE_PATTERNS))))
    pattern = re.compile(RULE_PATTERNS[place], re.MULTILINE)
    text = data.draw(st.from_regex(pattern))

    assert pattern.search(text)
    assert place in INDEX.possible(text)


@given(st.data())
def test_a_format_that_matches_is_always_possible(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(range(len(FORMATS))))
    text = data.draw(st.from_regex(FORMATS[place]))

    assert place in secret_patterns.format_index().possible(text)


def test_most_rules_are_left_out_of_an_ordinary_sentence() -> None:
    assert len(INDEX.possible("she drinks green tea in the morning.")) < 5


def test_parts_that_begin_or_overlap_each_other_are_all_found() -> None:
    index = PatternIndex(["re", "red", "edge", "ge", "红色", "色[0-9]"])

    assert index.possible("a redge") == [0, 1, 2, 3]
    assert index.possible("a redge, 红色5") == [0, 1, 2, 3, 4, 5]
    assert PatternIndex(["[0-9]"]).possible("é") == [0]


@given(st.lists(st.text("ab.[", max_size=4), min_size=1), st.text("ab.[", max_size=8))
def test_literals_match_the_longest_that_a_text_begins_with(texts: list[str], text: str) -> None:
    found = re.compile(literals(texts)).match(text)

    begun = [each for each in texts if text.startswith(each)]
    assert (found and found[0]) == (max(begun, key=len) if begun else None)
