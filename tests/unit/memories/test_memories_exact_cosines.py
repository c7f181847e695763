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


def test_compared_rows_have_exact_cosines_and_others_those_of_codes() -> None:
    records = with_exact_cosines(IDS, FOUR, {"c": found(0.5), "a": found(0.7)})

    assert records["similarity"].tolist() == pytest.approx([0.7, 0.9, 0.5, 0.9])
    assert records["ranked_similarity"][[0, 2]].tolist() == pytest.approx([0.35, 0.25])
    assert FOUR["similarity"].tolist() == pytest.approx([0.9] * 4)


def test_uncompared_row_displaces_no_compared_one() -> None:
    records = with_exact_cosines(IDS, FOUR, {"c": found(0.5), "a": found(0.7)})

    assert records["eligible"].tolist() == [True, False, True, False]


def test_row_that_fits_no_longer_is_no_hit() -> None:
    records = with_exact_cosines(IDS, FOUR, {"a": found(0.7, fits=False), "b": found(0.7)})

    assert records["eligible"].tolist() == [False, True, False, False]


def test_filtered_row_is_no_hit_though_compared() -> None:
    rows = told((0.9, 0.8, True, False), (0.9, 0.8, True, True))

    records = with_exact_cosines(("a", "b"), rows, {"a": found(0.7), "b": found(0.7)})

    assert records["eligible"].tolist() == [False, True]


def test_no_rows_give_no_hits() -> None:
    records = with_exact_cosines(IDS, FOUR, {})

    assert not records["eligible"].any()
    assert records["similarity"].tolist() == pytest.approx([0.9] * 4)
