"""Editing a row that carries a `version`: refused when the caller's one is stale."""

from collections.abc import Mapping
from typing import Any, Protocol

from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import VersionConflictError


class Versioned(Protocol):
    version: int


async def apply_changes(
    db: AsyncSession, row: Versioned, changes: Mapping[str, Any], *, expected: int | None
) -> bool:
    """Write `changes` into a locked row; what changes nothing writes nothing.

    Args:
        expected: the version the caller read, or None for "whatever it is now".

    Returns:
        Whether anything changed; then `version` has risen by one.

    Raises:
        VersionConflictError: the row has moved on.

    """
    if expected is not None and row.version != expected:
        raise VersionConflictError(row.version)
    changed = {name: value for name, value in changes.items() if getattr(row, name) != value}
    if not changed:
        return False
    for name, value in changed.items():
        setattr(row, name, value)
    row.version += 1
    await db.flush()
    await db.refresh(row)
    return True
