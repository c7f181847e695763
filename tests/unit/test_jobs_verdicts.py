"""What an error means for its job: figures at, below and above every bound."""

from datetime import UTC, datetime, timedelta

import pytest

from app.errors import (
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
    UnprocessableError,
)
from app.platform.jobs.failures import (
    JITTER,
    LONGEST_ASKED,
    LONGEST_JITTER,
    LONGEST_WAIT,
    QUOTA_WAITS,
    RETRY,
    DeferJobError,
    GiveUpJobError,
    back_off,
    judge,
)

SECOND = timedelta(seconds=1)
MOMENT = datetime(2026, 11, 21, tzinfo=UTC)


class DownError(UnavailableError):
    code = "model_unavailable"
    title = "Down"

    def __init__(self, reason: str | None = None, retry_after: object = None) -> None:
        super().__init__("The model is down.")
        self.reason = reason
        self.retry_after = retry_after


class BrokenError(DownError):
    """Would answer so again."""

    is_passing = False


class ToldError(UnavailableError):
    """Says why in its members."""

    code = "model_unavailable"
    title = "Down"


class LimitError(TooManyRequestsError):
    code = "rate_limited"
    title = "Limited"


class BusyError(TooManyRequestsError):
    code = "too_busy"
    title = "Busy"


class GoneError(NotFoundError):
    code = "session_not_found"
    title = "Gone"


class ConflictingError(ConflictError):
    code = "disabled"
    title = "Disabled"


class BadError(UnprocessableError):
    code = "bad"
    title = "Bad"


def judged(error: BaseException, attempts: int = 1, spread: float = 0.0):
    return judge(error, attempts=attempts, max_attempts=8, spread=spread)


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(0, 5), (1, 5), (2, 10), (3, 20), (4, 40), (6, 160), (7, 320), (8, 600), (9, 600), (999, 600)],
)
def test_the_wait_doubles_up_to_ten_minutes(attempts: int, seconds: int) -> None:
    assert back_off(attempts, 0) == seconds * SECOND


@pytest.mark.parametrize("attempts", [1, 4, 50])
def test_jitter_shortens_it_by_a_fifth_at_most(attempts: int) -> None:
    whole = back_off(attempts, 0)
    waits = [back_off(attempts, spread) for spread in (0, 0.25, 0.5, 1)]

    assert waits == sorted(waits, reverse=True)
    assert waits[-1] == whole * (1 - JITTER)
    assert max(waits) <= LONGEST_WAIT


@pytest.mark.parametrize(("attempts", "outcome"), [(7, "retry"), (8, "dead"), (9, "dead")])
def test_the_last_attempt_is_the_last(attempts: int, outcome: str) -> None:
    for error in (ValueError("x"), TimeoutError(), BrokenError()):
        assert judged(error, attempts).outcome == outcome


@pytest.mark.parametrize(("attempts", "outcome"), [(7, "retry"), (8, "defer"), (9, "defer")])
def test_what_waits_for_a_provider_that_is_down_never_dies(attempts: int, outcome: str) -> None:
    verdict = judged(DownError(), attempts)

    assert (verdict.outcome, verdict.status, verdict.reason) == (outcome, "pending", RETRY)
    assert verdict.counts is (outcome == "retry")
    assert verdict.wait == back_off(attempts, 0)


@pytest.mark.parametrize("asked", [7, 7.0, timedelta(seconds=7)])
def test_what_the_provider_asks_for_wins(asked: object) -> None:
    assert judged(DownError(retry_after=asked), attempts=5).wait == 7 * SECOND
    verdict = judged(DownError("rate_limited", asked))
    assert (verdict.wait, verdict.outcome, verdict.counts) == (7 * SECOND, "defer", False)


@pytest.mark.parametrize(
    ("asked", "most"),
    [(7, 1.4), (299, 59.8), (300, 60), (301, 60), (86_400, 60), (90_000, 60)],
)
def test_jobs_that_were_told_to_wait_come_back_apart_and_none_earlier(
    asked: float, most: float
) -> None:
    told = min(asked * SECOND, LONGEST_ASKED)
    for reason in ("rate_limited", None):
        waits = [
            judged(DownError(reason, asked), spread=spread).wait for spread in (0, 0.25, 0.5, 1)
        ]
        assert waits[0] == told
        assert waits == sorted(set(waits))
        assert waits[-1] == told + most * SECOND <= told + LONGEST_JITTER


@pytest.mark.parametrize("asked", [0, -3, None, "soon", timedelta(0)])
def test_nonsense_is_not_asked_for(asked: object) -> None:
    assert judged(DownError(retry_after=asked)).wait == 5 * SECOND


@pytest.mark.parametrize("more", [0, 1])
def test_nobody_may_ask_for_more_than_a_day(more: int) -> None:
    asked = LONGEST_ASKED.total_seconds() + more
    assert judged(DownError(retry_after=asked)).wait == LONGEST_ASKED
    assert judged(DownError(retry_after=asked * 1e12)).wait == LONGEST_ASKED


@pytest.mark.parametrize("reason", sorted(QUOTA_WAITS))
def test_a_quota_is_waited_for_and_costs_no_attempt(reason: str) -> None:
    for error in (DownError(reason), ToldError("Down.", reason=reason)):
        verdict = judged(error, attempts=8)
        assert (verdict.outcome, verdict.reason, verdict.wait) == (
            "defer", reason, QUOTA_WAITS[reason],
        )  # fmt: skip
        assert (verdict.status, verdict.code) == ("pending", "model_unavailable")


def test_a_limit_of_ours_says_itself_how_long() -> None:
    verdict = judged(LimitError("Limited.", retry_after=1234), attempts=8)
    assert (verdict.outcome, verdict.wait) == ("defer", 1234 * SECOND)
    assert judged(BusyError("Busy.", retry_after=3)).outcome == "retry"


@pytest.mark.parametrize("reason", ["authentication", "bad_answer", "timeout", None])
def test_other_failures_of_a_provider_count(reason: str | None) -> None:
    verdict = judged(DownError(reason))
    assert (verdict.outcome, verdict.reason, verdict.counts) == ("retry", "retry", True)


def test_what_is_gone_is_cancelled_and_what_is_refused_is_dead() -> None:
    assert judged(GoneError("Gone.")).status == "cancelled"
    for error in (ConflictingError("No."), BadError("No."), GiveUpJobError("bad", "It is bad.")):
        verdict = judged(error)
        assert (verdict.status, verdict.code) == ("dead", error.code)


def test_a_handler_may_say_when() -> None:
    verdict = judged(DeferJobError(MOMENT, "window_full"), attempts=8)
    assert (verdict.outcome, verdict.until, verdict.reason) == ("defer", MOMENT, "window_full")
    assert verdict.code is None


def test_an_unknown_error_says_its_type_alone() -> None:
    verdict = judged(ValueError("我的密码 is hunter2"))
    assert verdict.code == "unexpected_error"
    assert verdict.detail == "An error that nobody expected: ValueError."
