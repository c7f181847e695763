"""JSON objects larger than metadata: what is refused, what they weigh, and merge patches."""

import copy
import json
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue, ValidationError

from app.platform.values.json_objects import (
    DOCUMENT_DEPTH,
    json_size,
    large_object,
    merged,
    same_json,
)

LIMIT = 1024


class Body(BaseModel):
    value: Annotated[dict[str, JsonValue], large_object(LIMIT)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def nested(levels: int) -> dict[str, JsonValue]:
    value: JsonValue = 1
    for number in range(levels):
        value = {"a": value} if number % 2 or number == levels - 1 else [value]
    assert isinstance(value, dict)
    return value


class TestMergePatch:
    # The examples of RFC 7386, appendix A.
    @pytest.mark.parametrize(
        ("target", "patch", "expected"),
        [
            ({"a": "b"}, {"a": "c"}, {"a": "c"}),
            ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
            ({"a": "b"}, {"a": None}, {}),
            ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
            ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
            ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
            ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
            ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
            (["a", "b"], ["c", "d"], ["c", "d"]),
            ({"a": "b"}, ["c"], ["c"]),
            ({"a": "foo"}, None, None),
            ({"a": "foo"}, "bar", "bar"),
            ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
            ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
            ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ],
    )
    def test_the_examples_of_the_standard(
        self, target: JsonValue, patch: JsonValue, expected: JsonValue
    ) -> None:
        before = copy.deepcopy((target, patch))

        assert same_json(merged(target, patch), expected)
        assert (target, patch) == before

    @given(json_values, json_values)
    def test_a_patch_applied_twice_is_applied_once(
        self, target: JsonValue, patch: JsonValue
    ) -> None:
        once = merged(target, patch)

        assert same_json(merged(once, patch), once)

    @given(json_values)
    def test_an_empty_patch_changes_no_object(self, target: JsonValue) -> None:
        assert merged(target, {}) == (target if isinstance(target, dict) else {})


class TestSameness:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"a": True}, {"a": 1}),
            ({"a": 1}, {"a": 1.0}),
            ({"a": 0}, {"a": False}),
            ([1], {"a": 1}),
        ],
    )
    def test_what_python_takes_for_the_same_json_does_not(
        self, one: JsonValue, other: JsonValue
    ) -> None:
        assert not same_json(one, other)

    def test_the_order_of_keys_means_nothing(self) -> None:
        assert same_json({"a": 1, "b": [2]}, {"b": [2], "a": 1})


class TestBounds:
    @pytest.mark.parametrize("letter", ["x", "京", "😀", '"'])
    def test_the_size_is_that_of_the_shortest_json(self, letter: str) -> None:
        value: dict[str, JsonValue] = {"a": letter * 7, "b": [1, None, True]}

        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))

        assert json_size(value) == len(text.encode())

    @pytest.mark.parametrize(("more", "fits"), [(-1, True), (0, True), (1, False)])
    def test_the_limit_is_the_largest_that_fits(self, *, more: int, fits: bool) -> None:
        value = {"a": "x" * (LIMIT - len('{"a":""}') + more)}

        if fits:
            assert Body(value=value).value == value
        else:
            with pytest.raises(ValidationError, match="larger than 1 KiB"):
                Body(value=value)

    @pytest.mark.parametrize(("more", "fits"), [(-1, True), (0, True), (1, False), (5000, False)])
    def test_the_deepest_that_fits(self, *, more: int, fits: bool) -> None:
        value = nested(DOCUMENT_DEPTH + more)

        if fits:
            assert Body(value=value).value == value
        else:
            with pytest.raises(ValidationError, match="deeper than 32"):
                Body(value=value)

    @pytest.mark.parametrize(
        "value",
        [
            {"a": "\x00"}, {"\x00": 1}, {"a": [{"b": "x\x00y"}]}, {"a": "\\\x00"},
            {"a": "\ud800"}, {"\udfff": 1}, {"a": float("nan")}, {"a": [float("inf")]},
            {"a": 2**63}, {"a": [-(2**63)]},
        ],
    )  # fmt: skip
    def test_what_cannot_be_stored_is_refused(self, value: dict[str, JsonValue]) -> None:
        with pytest.raises(ValidationError):
            Body(value=value)

    @pytest.mark.parametrize(
        "value",
        [
            {"a": "\\u0000"}, {"a": "\\\\u0000"}, {"\\u0000": "京 😀 \ud83d\ude00".encode(
                "utf-16", "surrogatepass").decode("utf-16")},
            {"a": 2**63 - 1}, {"a": -(2**63 - 1)}, {"a": 1e300}, {"a": None}, {},
        ],
    )  # fmt: skip
    def test_what_only_looks_like_it_is_taken(self, value: dict[str, JsonValue]) -> None:
        assert Body(value=value).value == value
