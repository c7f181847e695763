"""How long a stopping worker tries to store the ends of its runs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from app.platform.database.engine import Database
from app.platform.database.failures import DatabaseReadOnlyError
from app.platform.jobs.dispatch import Dispatch
from app.platform.jobs.endings import Endings
from app.platform.jobs.orders import ClaimedJob

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = ClaimedJob(
    "acme", "job_1", "extract", "s1", None, None, None, None, frozenset(), {}, 0, 8, 0, "token",
    NOW, NOW, NOW, NOW,
)  # fmt: skip


@dataclass
class Flaky:
    """A queue that refuses the first `failures` writes."""

    failures: float
    asked: int = 0

    async def finish(self, done: Sequence[tuple[ClaimedJob, str | None]]) -> dict[str, Any]:
        self.asked += 1
        if self.asked <= self.failures:
            raise DatabaseReadOnlyError
        return {job.lease_token: "finished" for job, _ in done}


async def end_after_a_while(queue: Flaky) -> bool:
    """Drain for longer than is waited for the database, and end a run then."""
    endings = Endings(cast("Database", None), cast("Dispatch", queue), pause_seconds=0.01)
    endings.give_up_after(0.05)
    await asyncio.sleep(0.1)
    running = asyncio.create_task(endings.run())
    try:
        return await endings.succeed(JOB, None)
    finally:
        running.cancel()


async def test_one_failed_write_late_in_a_stop_loses_nothing() -> None:
    assert await end_after_a_while(Flaky(failures=1)) is True


async def test_what_cannot_be_written_for_long_is_given_up() -> None:
    queue = Flaky(failures=float("inf"))

    with pytest.raises(DatabaseReadOnlyError):
        await end_after_a_while(queue)

    assert queue.asked > 1
