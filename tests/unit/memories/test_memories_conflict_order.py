"""Of hits in conflict the newer comes first, and no hit is lost or found twice."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memory.memories.candidate_search import Found, newer_first
from app.memory.memories.hybrid import RankedMemory


def hits(newer: Mapping[str, Sequence[str]]) -> list[Found]:
    """Hits in the order of the keys, each with the ids of those that were said later."""
    return [
        Found(
            {"newer_conflicts": ids},  # type: ignore[arg-type]  # a record reads the same
            RankedMemory(memory_id, 0.5, 0.5, 0.5, 0.5, 1.0, 0.6),
        )
        for memory_id, ids in newer.items()
    ]


def order(newer: Mapping[str, Sequence[str]]) -> str:
    return "".join(one.ranked.memory_id for one in newer_first(hits(newer)))


@pytest.mark.parametrize(
    ("newer", "wanted"),
    [
        ({}, ""),
        ({"a": "", "b": "", "c": ""}, "abc"),
        # Directly before the older, or at its own place where that is better already.
        ({"a": "", "b": "d", "c": "", "d": ""}, "adbc"),
        ({"a": "", "b": "", "c": "", "d": "b"}, "abcd"),
        # Not a hit.
        ({"a": "x", "b": ""}, "ab"),
        # Three, and a chain whose ends are not in conflict.
        ({"a": "cb", "b": "c", "c": ""}, "cba"),
        ({"a": "b", "b": "c", "c": ""}, "cba"),
        # Two statements read at two times may say the opposite: both stay.
        ({"a": "b", "b": "a"}, "ba"),
        ({"a": "a"}, "a"),
    ],
)
def test_newer_comes_first(newer: dict[str, str], wanted: str) -> None:
    assert order(newer) == wanted


@given(
    st.permutations("abcdef"),
    st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=9),
)
def test_every_hit_stays_and_none_is_before_a_newer_one(
    ranks: Sequence[str], pairs: set[tuple[str, str]]
) -> None:
    # Of two letters the later one is the newer.
    newer = {one: [b for a, b in sorted(pairs, reverse=True) if a == one < b] for one in ranks}

    found = order(newer)

    assert sorted(found) == sorted(ranks)
    for one, ids in newer.items():
        assert all(found.index(each) < found.index(one) for each in ids)
    if not any(newer.values()):
        assert list(found) == list(ranks)
