"""Which memories count now, which count around now, and what is said of these, as SQL.

Where a model is to be told what is so, what has just ended and what begins later are worth a line
that says it: without one, a contract is gone on its last day, and a move comes as a surprise.
"""

from typing import Final

ENDED_DAYS: Final = 30
"""So long what has ended is shown: for about a month people speak of it as of late, and a list of
all that ever ended would be longer than what holds."""

VALIDITY: Final = "validity"
"""The column that `validity` gives a hit; the table does not have it."""


def counts_now(row: str) -> str:
    """Whether a row is active, not expired and inside its time of validity."""
    return f"""{_kept(row)}
        AND ({row}.valid_from IS NULL OR {row}.valid_from <= now())
        AND ({row}.valid_to IS NULL OR {row}.valid_to > now())"""


def counts_around_now(row: str) -> str:
    """Whether a row counts now, begins later, or ended in the last `ENDED_DAYS`.

    What another memory has replaced is not among the latter: the other one is shown. Neither is
    what was replaced before it could begin.
    """
    ended = f"now() - interval '{ENDED_DAYS} days'"
    return f"""{_kept(row)}
        AND ({row}.valid_to IS NULL OR {row}.valid_to > now()
            OR ({row}.valid_to > {ended} AND {row}.superseded_by IS NULL))
        AND ({row}.valid_from IS NULL OR {row}.valid_to IS NULL
            OR {row}.valid_from < {row}.valid_to)"""


def has_ended(row: str) -> str:
    """Whether the time of validity of a row is over; never null."""
    return f"coalesce({row}.valid_to <= now(), false)"


def validity(row: str) -> str:
    """`ended`, `upcoming` or `current`."""
    return (
        f"CASE WHEN {has_ended(row)} THEN 'ended' "
        f"WHEN {row}.valid_from > now() THEN 'upcoming' ELSE 'current' END"
    )


def _kept(row: str) -> str:
    return f"""{row}.status = 'active'
        AND ({row}.expires_at IS NULL OR {row}.expires_at > now())"""
