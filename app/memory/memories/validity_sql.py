"""Which memories count now, which count around now and what is said of these, and which of them
contradict each other, as SQL: the rules that searches, reads and lists share.

Where a model is to be told what is so, what has just ended and what begins later are worth a line
that says it: without one, a contract is gone on its last day, and a move comes as a surprise.

A memory names those that it may contradict in `conflict_ids`. A link counts where both name each
other, both count now, and whoever sees one of them sees the other: so a memory leaves its conflicts
by changing its own row alone, and an id that is gone does no harm. In ordinary rows the column is
null, and nothing is looked up.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from sqlalchemy import TextClause, text

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


COMPUTED: Final = ("conflicts_with", "newer_conflicts")
"""Columns of a hit that the table does not have."""

NOTHING: Final = "CAST('{}' AS text[])"


def shown_columns(names: Sequence[str], *, now: bool = True) -> str:
    """The columns of a hit `memories`, in a statement that `Database.fetch` frames.

    Args:
        now: false for a state of the past, in which nothing is in conflict.

    """
    return _shown_columns(tuple(names), now)


@lru_cache
def _shown_columns(names: tuple[str, ...], now: bool) -> str:
    shown = {name: expression if now else NOTHING for name, expression in _EXPRESSIONS.items()}
    return ", ".join(f"{shown.get(name, f'memories.{name}')} AS {name}" for name in names)


def contradicting(tenant: str) -> str:
    """FROM and WHERE of what `memories` is in conflict with, as `other`; empty without any.

    Args:
        tenant: SQL for the tenant.

    """
    # Without coalesce the index of all that have links is preferred to the key while they are few.
    return f"""FROM memories AS other
        WHERE other.tenant_id = {tenant} AND other.memory_id = ANY (memories.conflict_ids)
        AND memories.memory_id = ANY (coalesce(other.conflict_ids, '{{}}'))
        AND other.scope = memories.scope AND other.scope_id = memories.scope_id
        AND other.user_id IS NOT DISTINCT FROM memories.user_id
        AND other.agent_id IS NOT DISTINCT FROM memories.agent_id
        AND other.visibility = memories.visibility
        AND {counts_now("memories")} AND {counts_now("other")}"""


def conflicts(tenant: str) -> dict[str, str]:
    """An expression for each of `COMPUTED`: ids, newest first."""
    listed = f"SELECT other.memory_id {contradicting(tenant)}"
    order = f"ORDER BY {_said('other')} DESC, other.memory_id DESC"
    newer = f"AND ({_said('other')}, other.memory_id) > ({_said('memories')}, memories.memory_id)"
    return {"conflicts_with": f"ARRAY({listed} {order})",
            "newer_conflicts": f"ARRAY({listed} {newer} {order})"}  # fmt: skip


def in_conflict(tenant_id: str, *, wanted: bool) -> TextClause:
    """Whether `memories` is in conflict with another, as a condition; or that it is not."""
    some = f"EXISTS (SELECT 1 {contradicting(':conflict_tenant')})"
    condition = f"memories.conflict_ids IS NOT NULL AND {some}"
    return text(condition if wanted else f"NOT ({condition})").bindparams(conflict_tenant=tenant_id)


def _said(row: str) -> str:
    """When a statement was said, or since when it holds."""
    return f"coalesce({row}.said_at, {row}.valid_from, {row}.create_time)"


_EXPRESSIONS: Final = {
    name: f"CASE WHEN memories.conflict_ids IS NULL THEN {NOTHING} ELSE {expression} END"
    for name, expression in conflicts("tenant.id").items()
} | {VALIDITY: validity("memories")}
