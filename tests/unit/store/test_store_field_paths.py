"""Paths of texts, held against LangGraph's own reading of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import get_text_at_path, tokenize_path

from app.memory.store.field_paths import texts_at

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


@given(value=VALUES, path=PATHS)
def test_paths_are_read_as_langgraph_reads_them(value: object, path: str) -> None:
    assert texts_at(value, path) == get_text_at_path(value, tokenize_path(path) or "$")


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

    assert texts_at(value, path) == texts
