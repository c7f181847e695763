"""What the second statement of a search by codes changes of what the first has told."""

from typing import Any

import numpy as np
import pytest

from app.memory.memories.hybrid import with_exact_cosines

LAYOUT = np.dtype(
    [("similarity", ">f4"), ("ranked_similarity", ">f4"), ("rough", "?"), ("eligible", "?")]
)
IDS = ("a", "b", "c", "d")


def told(*rows: tuple[float, float, bool, bool]) -> Any:
    """Records as the first statement gives them: those bytes cannot be written to."""
    return np.frombuffer(np.array(list(rows), LAYOUT).tobytes(), LAYOUT)


def found(exact: float, *, fits: bool = True) -> dict[str, Any]:
    return {"exact": exact, "exact_ranked": exact / 2, "fits": fits}


FOUR = told(*((0.9, 0.8, True, True) for _ in IDS))


def test_what_was_compared_has_its_true_cosines_and_the_others_what_codes_told() -> None:
    records = with_exact_cosines(IDS, FOUR, {"c": found(0.5), "a": found(0.7)})

    assert records["similarity"].tolist() == pytest.approx([0.7, 0.9, 0.5, 0.9])
    assert records["ranked_similarity"][[0, 2]].tolist() == pytest.approx([0.35, 0.25])
    assert FOUR["similarity"].tolist() == pytest.approx([0.9] * 4)


def test_what_was_not_compared_takes_the_place_of_nothing_that_was() -> None:
    records = with_exact_cosines(IDS, FOUR, {"c": found(0.5), "a": found(0.7)})

    assert records["eligible"].tolist() == [True, False, True, False]


def test_what_does_not_fit_any_more_is_no_hit() -> None:
    records = with_exact_cosines(IDS, FOUR, {"a": found(0.7, fits=False), "b": found(0.7)})

    assert records["eligible"].tolist() == [False, True, False, False]


def test_what_was_left_out_is_no_hit_though_it_was_compared() -> None:
    rows = told((0.9, 0.8, True, False), (0.9, 0.8, True, True))

    records = with_exact_cosines(("a", "b"), rows, {"a": found(0.7), "b": found(0.7)})

    assert records["eligible"].tolist() == [False, True]


def test_when_all_are_gone_nothing_is_left_to_find() -> None:
    records = with_exact_cosines(IDS, FOUR, {})

    assert not records["eligible"].any()
    assert records["similarity"].tolist() == pytest.approx([0.9] * 4)
