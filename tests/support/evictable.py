"""Memories as the choice of who goes first beyond a cap sees them."""

from datetime import UTC, datetime, timedelta

from app.memory.memories.eviction_repository import Evictable

NOW = datetime(2026, 11, 23, tzinfo=UTC)

DAY = timedelta(days=1)


def evictable(
    memory_id: str = "mem_a",
    confidence: float = 0.8,
    *,
    confirmed: float = 0,
    used: float | None = None,
    uses: int = 0,
    kind: str = "fact",
    changed: float = 0,
) -> Evictable:
    """A memory that was confirmed, used and changed so many days ago."""
    return Evictable(
        memory_id,
        kind,
        confidence,
        NOW - confirmed * DAY,
        None if used is None else NOW - used * DAY,
        uses,
        NOW - changed * DAY,
    )
