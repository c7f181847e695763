"""Periodic work of a worker, each kind in a task of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from app.platform.jobs.metrics import TICKS

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Ticker:
    """Periodic work that every worker does: at its start, then at this interval.

    It may run in several processes at once. An error is logged, and it is tried again.
    """

    name: str
    interval: timedelta
    run: Callable[[], Awaitable[None]]


async def tick_for_ever(ticker: Ticker) -> None:
    """Run `ticker` until cancelled; nothing else ends it."""
    failing = False
    while True:
        try:
            await ticker.run()
        except Exception as error:  # noqa: BLE001 (it is tried again)
            TICKS.labels(ticker.name, "failed").inc()
            if not failing:
                log.warning("tick_failed", name=ticker.name, error=type(error).__name__)
            failing = True
        else:
            TICKS.labels(ticker.name, "done").inc()
            failing = False
        await asyncio.sleep(ticker.interval.total_seconds())
