"""What whoever waits for a reading is told by the state of its job."""

from datetime import UTC, datetime, timedelta

import pytest

from app.memory.extraction.schemas import FAILURE
from app.memory.extraction.service import failure_of, is_deferred_beyond
from app.platform.jobs.models import LANE_BUSY, Job

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)


def job(after: timedelta, *, status: str = "pending", reason: str | None = "retry") -> Job:
    """A job whose last run failed for a model, due again so long after now."""
    return Job(
        status=status,
        deferred_reason=reason,
        due_at=NOW + after,
        error_code="model_unavailable",
        payload={FAILURE: {"code": "model_unavailable", "reason": "provider_error"}},
    )


@pytest.mark.parametrize(
    ("off", "beyond"), [(-INSTANT, False), (timedelta(0), False), (INSTANT, True)]
)
def test_what_is_due_within_the_wait_is_waited_for(off: timedelta, beyond: bool) -> None:
    end = NOW + timedelta(minutes=1)

    assert is_deferred_beyond(job(end - NOW + off, reason="daily_calls"), end) is beyond


@pytest.mark.parametrize(
    ("status", "reason"), [("pending", LANE_BUSY), ("pending", None), ("running", "daily_calls")]
)
def test_what_will_run_is_waited_for(status: str, reason: str | None) -> None:
    tomorrow = job(timedelta(days=1), status=status, reason=reason)

    assert not is_deferred_beyond(tomorrow, NOW)
    assert failure_of(tomorrow, NOW, None) is None


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        (timedelta(seconds=-3), 1),
        (timedelta(0), 1),
        (timedelta(seconds=1), 1),
        (timedelta(seconds=1) + INSTANT, 2),
        (timedelta(minutes=13), 780),
    ],
)
def test_a_failure_says_when_its_job_is_tried_again(after: timedelta, seconds: int) -> None:
    failure = failure_of(job(after), NOW, None)

    assert failure is not None
    assert failure.headers == {"Retry-After": str(seconds)}


@pytest.mark.parametrize(
    ("off", "told"), [(-INSTANT, False), (timedelta(0), False), (INSTANT, True)]
)
def test_a_failure_whose_job_is_due_soon_is_not_told_yet(off: timedelta, told: bool) -> None:
    soon = NOW + timedelta(seconds=2)

    assert (failure_of(job(soon - NOW + off), NOW, soon) is not None) is told


def test_a_dead_job_tells_its_failure_and_is_not_tried_again() -> None:
    failure = failure_of(job(timedelta(seconds=-9), status="dead", reason=None), NOW, None)

    assert failure is not None
    assert failure.headers == {"Retry-After": "5"}
