"""Keyset pagination in SQL: a page starts after a row, never at an offset."""

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

S = TypeVar("S", bound=Select[Any])


def after(
    statement: S,
    columns: Sequence[InstrumentedAttribute[Any]],
    *,
    start: Sequence[Any] | None,
    descending: bool,
    limit: int,
) -> S:
    """`statement` ordered by `columns`, beginning after the values in `start`.

    It selects one row more than `limit`: the extra row means that another page follows.
    """
    ordered = statement.order_by(
        *(column.desc() if descending else column.asc() for column in columns)
    ).limit(limit + 1)
    if start is None:
        return ordered
    here, there = tuple_(*columns), tuple_(*start)
    return ordered.where(here < there if descending else here > there)
