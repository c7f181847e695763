"""What a line says against what is there under its key. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Table

from app.governance.exports.exported_tables import BELONGS, DERIVED, TABLES, references_of

Row = Mapping[str, Any]

# Agents and users are known by their ids alone: callers choose them, and mean the same ones.
_PARENTS: Final = frozenset(
    {key.referred_table.name for table in TABLES.values() for key in references_of(table)}
    | {parent for _, parent in BELONGS.values()}
) - {"agents", "users"}

# They stay as they are as long as a row lives, and an import keeps them.
_MARKS: Final = ("create_time", "user_id", "scope", "scope_id")


def is_same(line: Row, row: Row) -> bool:
    """Whether a row is there as a line says it; a line need not say every column."""
    return not _differing(line, row)


def difference(table: Table, line: Row, row: Row) -> str:
    """How a row differs from a line; names of columns, never what they say."""
    told = f"differs in {', '.join(_differing(line, row))}"
    return f"is another row of this id: {told}" if is_another(table, line, row) else told


def is_another(table: Table, line: Row, row: Row) -> bool:
    """Whether a row is not an older or newer form of a line, and others may hang on it.

    It was made at another time, or for somebody else: what hangs on the line is not its own.
    """
    return table.name in _PARENTS and any(
        line.get(name) is not None and row.get(name) is not None and line[name] != row[name]
        for name in _MARKS
    )


def _differing(line: Row, row: Row) -> list[str]:
    return sorted(
        name for name, value in line.items() if name not in DERIVED and row[name] != value
    )
