"""Locks by name, held until the transaction ends: one transaction at a time decides about it."""

from sqlalchemy.ext.asyncio import AsyncSession

from app.platform.database.engine import driver_of

# The name as hexadecimal digits, since it is written into the text of a simple query.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(convert_from('\\x{name}', 'UTF8'), 1))"


def lock_statement(name: str) -> str:
    """Waits for the lock of this name.

    A statement of its own, before the one that reads what the lock is about: the snapshot of a
    statement is older than a lock for which the statement itself waits.
    """
    return _LOCK.format(name=name.encode().hex())


async def take_lock(db: AsyncSession, name: str) -> None:
    """Wait for the lock of this name."""
    await (await driver_of(db)).execute(lock_statement(name))
