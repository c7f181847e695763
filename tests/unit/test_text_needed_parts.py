"""Expressions that a text cannot match are left out, and no others."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text import secret_patterns
from app.language.text.injections import RULES, _whole
from app.language.text.lazy_pattern import PatternIndex, needed_parts

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
