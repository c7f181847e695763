"""Which day "now" means in a profile: that of the newest statement."""

from datetime import UTC, date, datetime, timedelta

import pytest

from app.language.llm.profiler import ProfileMemory, newest_day

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OLD = datetime(2024, 4, 2, 9, tzinfo=UTC)


def memory(since: datetime, **members: datetime | None) -> ProfileMemory:
    return ProfileMemory("mem_1", "The user sings.", "fact", None, 0.9, since, **members)


@pytest.mark.parametrize(
    ("known", "day"),
    [
        ([], NOW.date()),
        ([memory(OLD, said_at=OLD)], OLD.date()),
        ([memory(OLD, said_at=OLD), memory(OLD, said_at=OLD + timedelta(1))], date(2024, 4, 3)),
        # When it begins says nothing of when it was said.
        ([memory(NOW + timedelta(9), said_at=OLD, valid_from=NOW + timedelta(9))], OLD.date()),
        # Saved without a time on that day.
        ([memory(OLD)], OLD.date()),
        ([memory(OLD, valid_from=OLD)], NOW.date()),
        ([memory(OLD, said_at=NOW + timedelta(2))], NOW.date()),
    ],
)
def test_newest_statement_is_the_day_of_a_profile(known: list[ProfileMemory], day: date) -> None:
    assert newest_day(known, NOW) == day
