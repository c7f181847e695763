"""Paths of texts, held against LangGraph's own reading of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import get_text_at_path, tokenize_path

from app.memory.store.json_values import Looks, LooksExceededError, steps_of, texts_at

NAMES = st.sampled_from(["a", "b", "枫", "0", "a b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
STEPS = NAMES | st.sampled_from(
    ["[0]", "[1]", "[-1]", "[*]", "[x]", "*", "{a,b}", "{a.b, 枫}", "[0", "{a", "a}", "a]"]
)
PATHS = st.lists(STEPS, max_size=4).map(".".join) | st.lists(STEPS, max_size=4).map("".join)


def texts_of(value: object, path: str, most: int = 1000) -> list[str]:
    return list(texts_at(value, steps_of(path), Looks(most)))


@given(value=VALUES, path=PATHS)
def test_paths_are_read_as_langgraph_reads_them(value: object, path: str) -> None:
    assert texts_of(value, path) == get_text_at_path(value, tokenize_path(path) or "$")


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("$", ['{"list": [{"t": "x"}, {"t": null}, {"t": 3}], "n": {"b": true}}']),
        ("list[*].t", ["x", "3"]),
        ("list[-1].t", ["3"]),
        ("list[3].t", []),
        ("n.b", ["True"]),
        ("n", ['{"b": true}']),
        ("*", ['[{"t": "x"}, {"t": null}, {"t": 3}]', '{"b": true}']),
        ("missing", []),
    ],
)
def test_examples(path: str, texts: list[str]) -> None:
    value = {"list": [{"t": "x"}, {"t": None}, {"t": 3}], "n": {"b": True}}

    assert texts_of(value, path) == texts


@pytest.mark.parametrize(
    ("path", "looks"),
    [("a[*]", 6), ("a[*].b", 6), ("a[*].{b,c}", 18), ("a.[*]", 6)],
)
def test_no_more_values_are_looked_at_than_allowed(path: str, looks: int) -> None:
    value = {"a": [{"c": 1}] * 4}

    assert texts_of(value, path, looks) == texts_of(value, path)
    with pytest.raises(LooksExceededError):
        texts_of(value, path, looks - 1)


def test_ways_to_write_a_path_are_one() -> None:
    assert len({steps_of(path) for path in ("a[*]", "a.[*]", "a..[*]", ".a[*].")}) == 1
    assert {steps_of("$"), steps_of(".")} == {()}
