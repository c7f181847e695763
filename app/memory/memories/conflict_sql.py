"""Which memories contradict each other, as SQL: the rule that searches, reads and lists share.

A memory names those that it may contradict in `conflict_ids`. A link counts where both name each
other, both count now, and whoever sees one of them sees the other: so a memory leaves its conflicts
by changing its own row alone, and an id that is gone does no harm. In ordinary rows the column is
null, and nothing is looked up.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import TextClause, text

from app.memory.memories.validity_sql import VALIDITY, counts_now, validity

COMPUTED: Final = ("conflicts_with", "newer_conflicts")
"""Columns of a hit that the table does not have."""

NOTHING: Final = "CAST('{}' AS text[])"


def shown_columns(names: Sequence[str], *, now: bool = True) -> str:
    """The columns of a hit `memories`, in a statement that `Database.fetch` frames.

    Args:
        now: false for a state of the past, in which nothing is in conflict.

    """
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
