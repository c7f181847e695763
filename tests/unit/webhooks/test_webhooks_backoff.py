"""When to try again, as figures."""

from datetime import UTC, datetime, timedelta

import pytest

from app.governance.webhooks.sender import (
    DELAYS,
    LONGEST_PAUSE,
    LONGEST_WAIT,
    MOST_ATTEMPTS,
    next_attempt,
    pause_after,
    read_retry_after,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def after(attempts: int, retry_after: timedelta | None = None, chance: float = 0.5) -> timedelta:
    moment = next_attempt(attempts, at=NOW, retry_after=retry_after, chance=chance)
    assert moment is not None
    return moment - NOW


def test_delays_grow_from_seconds_to_a_day() -> None:
    seconds = [after(number).total_seconds() for number in range(1, MOST_ATTEMPTS)]

    assert seconds == [10, 60, 300, 1800, 7200, 21600, 43200, 86400]


def test_the_last_attempt_is_the_last() -> None:
    assert next_attempt(MOST_ATTEMPTS - 1, at=NOW, retry_after=None, chance=0.5) is not None
    assert next_attempt(MOST_ATTEMPTS, at=NOW, retry_after=None, chance=0.5) is None
    assert next_attempt(MOST_ATTEMPTS + 1, at=NOW, retry_after=LONGEST_WAIT, chance=0.5) is None


def test_delays_vary_by_a_tenth() -> None:
    assert after(1, chance=0.0) == timedelta(seconds=9)
    assert after(1, chance=1.0) == timedelta(seconds=11)


def test_a_receiver_may_ask_for_more_time_and_not_for_less() -> None:
    assert after(1, timedelta(seconds=5)) == timedelta(seconds=10)
    assert after(1, timedelta(seconds=11)) == timedelta(seconds=11)
    assert after(8, timedelta(seconds=11)) == DELAYS[-1]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("7", 7),
        (" 120 ", 120),
        ("86399", 86399),
        ("86400", 86400),
        ("86401", 86400),
        ("9" * 500, 86400),
        ("Sat, 21 Nov 2026 12:01:00 GMT", 60),
        ("Sat, 21 Nov 2026 12:01:00", 60),
        ("Sat, 21 Nov 2026 11:59:00 GMT", 0),
        ("Sat, 21 Nov 2099 12:00:00 GMT", 86400),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: int) -> None:
    assert read_retry_after(value, at=NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value", ["", "-1", "1.5", "soon", "²", "٣x", "Sat, 99 Nov 2026 12:00:00 GMT", "0x10", "\x00"]
)
def test_what_is_no_retry_after_is_left_out(value: str) -> None:
    assert read_retry_after(value, at=NOW) is None


def test_a_pause_needs_three_failures_in_a_row_and_has_an_end() -> None:
    pauses = [pause_after(failures, None) for failures in range(1, 12)]

    assert pauses[:2] == [None, None]
    assert [pause.total_seconds() for pause in pauses[2:8] if pause] == [10, 20, 40, 80, 160, 300]
    assert set(pauses[8:]) == {LONGEST_PAUSE}
    assert pause_after(10_000, None) == LONGEST_PAUSE


def test_a_receiver_that_asks_for_time_gets_it_at_once() -> None:
    assert pause_after(1, timedelta(seconds=90)) == timedelta(seconds=90)
    assert pause_after(1, timedelta(0)) is None
