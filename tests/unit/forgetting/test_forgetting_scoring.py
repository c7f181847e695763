"""Who goes first beyond a cap: by hand, and PostgreSQL and Python agree on any rows."""

import pytest

from app.memory.memories.eviction_repository import Evictable, hybrid_score, reserve, weakest
from tests.support.evictable import NOW, evictable


class TestScore:
    @pytest.mark.parametrize(
        ("row", "expected"),
        [
            (evictable(confidence=1.0), 0.9),
            (evictable(confidence=0.0), 0.25),
            (evictable(confirmed=90), 0.65 * 0.8 + 0.125),
            (evictable(confirmed=180), 0.65 * 0.8 + 0.0625),
            (evictable(used=0, uses=1), 0.65 * 0.8 + 0.25 + 0.05),
            (evictable(used=30, uses=1), 0.65 * 0.8 + 0.25 + 0.025),
            (evictable(used=0, uses=9), 0.65 * 0.8 + 0.25 + 0.09),
            # Clocks differ: what was confirmed in the future is fresh and no more.
            (evictable(confirmed=-5), 0.65 * 0.8 + 0.25),
        ],
    )
    def test_retention_score_is_65_25_and_10_parts(self, row: Evictable, expected: float) -> None:
        assert hybrid_score(row, NOW) == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("keep", "places"), [(0, 0), (1, 1), (10, 1), (11, 2), (99, 10), (100, 10), (500, 10)]
    )
    def test_a_tenth_is_reserved_and_at_most_ten(self, keep: int, places: int) -> None:
        assert reserve(keep) == places


class TestOrder:
    def test_by_confidence_the_least_certain_goes_first_then_the_least_lately_changed(self) -> None:
        rows = [
            evictable("a", 0.9),
            evictable("b", 0.7, changed=1),
            evictable("c", 0.7, changed=2),
            evictable("d", 0.8),
        ]

        assert weakest(rows, keep=1, eviction="confidence", now=NOW) == ["c", "b", "d"]
        assert weakest(rows, keep=4, eviction="confidence", now=NOW) == []

    def test_the_hybrid_score_spares_what_is_fresh_and_asked_for(self) -> None:
        rows = [evictable("stale", 0.9, confirmed=900), evictable("used", 0.75, used=1, uses=20)]

        assert weakest(rows, keep=1, eviction="confidence", now=NOW) == ["used"]
        assert weakest(rows, keep=1, eviction="hybrid", now=NOW) == ["stale"]

    def test_corrections_never_count_by_confidence_and_up_to_the_reserve_by_score(self) -> None:
        rows = [evictable(f"c{n}", 0.5 + n / 100, kind="correction") for n in range(3)]
        rows += [evictable(f"f{n}", 0.9) for n in range(9)]

        assert weakest(rows, keep=9, eviction="confidence", now=NOW) == []
        # One of ten has a place of its own; the other two compete, and are weaker.
        assert weakest(rows, keep=10, eviction="hybrid", now=NOW) == ["c0"]
        assert weakest(rows, keep=9, eviction="hybrid", now=NOW) == ["c0", "c1"]
