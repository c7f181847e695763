"""Buckets, and the percentiles read from them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.identity.usage.activity import LONGER, MILLISECONDS, WAITS, bucket_of, percentile


@pytest.mark.parametrize(
    ("milliseconds", "bucket"),
    [
        (0, "1"),
        (0.99, "1"),
        (1, "2"),
        (49.9, "50"),
        (50, "100"),
        (29_999, "30000"),
        (30_000, LONGER),
    ],
)
def test_an_end_is_in_the_bucket_above_it(milliseconds: float, bucket: str) -> None:
    assert bucket_of(milliseconds, MILLISECONDS) == bucket


def test_nothing_counted_has_no_percentile() -> None:
    assert percentile({}, 0.5, MILLISECONDS) is None


def test_a_percentile_lies_within_its_bucket() -> None:
    counts = {"10": 50, "100": 45, "1000": 5}

    assert percentile(counts, 0.5, MILLISECONDS) == 10.0
    assert percentile(counts, 0.25, MILLISECONDS) == 7.5
    assert percentile(counts, 0.95, MILLISECONDS) == 100.0
    assert percentile(counts, 0.96, MILLISECONDS) == 600.0


def test_of_what_is_longer_than_all_ends_the_last_end_is_known() -> None:
    assert percentile({LONGER: 3}, 0.5, WAITS) == WAITS[-1]


@given(st.lists(st.floats(0, 29_999), min_size=1), st.sampled_from([0.5, 0.95]))
def test_a_percentile_is_in_the_bucket_of_the_true_one(values: list[float], share: float) -> None:
    counts = Counter(bucket_of(value, MILLISECONDS) for value in values)
    true = sorted(values)[max(int(-(-share * len(values) // 1)) - 1, 0)]

    estimated = percentile(counts, share, MILLISECONDS)

    assert estimated is not None
    end = int(bucket_of(true, MILLISECONDS))
    start = max((each for each in MILLISECONDS if each < end), default=0)
    assert start <= estimated <= end
