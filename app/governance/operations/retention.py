"""How long is kept what time makes worthless, and the names under which it is counted. Pure."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each kind of row is kept once it is over.

    Args:
        deleted: what was deleted, refused or expired: the setting MEMORY_PURGE_DAYS.
        jobs: jobs that succeeded or were cancelled.
        upkeep: those that only did maintenance or notified webhooks, of which there are many.
        dead_jobs: jobs that somebody should have looked at.
        extraction_runs: the log of which model read what.
        deliveries: what webhooks were told.
        dead_deliveries: what they could not be told.
        usage: the ledger; a year can be compared with the one before.

    """

    deleted: timedelta
    jobs: timedelta = timedelta(days=7)
    upkeep: timedelta = timedelta(hours=6)
    dead_jobs: timedelta = timedelta(days=30)
    extraction_runs: timedelta = timedelta(days=90)
    deliveries: timedelta = timedelta(days=7)
    dead_deliveries: timedelta = timedelta(days=30)
    usage: timedelta = timedelta(days=400)
