"""What a failed statement means to a caller: the database is busy, gone, full or too slow, or a
constraint was violated. The database's own text is never shown. And room that is kept free on the
disk of the embedded database.

A PostgreSQL that cannot write its log stops, and then nothing can be read either. So what would
store something is refused before that, while reading and deleting go on.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import asyncpg
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.errors import DomainError, UnavailableError, UnprocessableError


class DatabaseUnavailableError(UnavailableError):
    code = "database_unavailable"
    title = "Database not reachable"

    def __init__(self) -> None:
        super().__init__("The database does not answer. Nothing was written; try again.")


class DatabaseBusyError(UnavailableError):
    code = "database_busy"
    title = "Database busy"
    headers = {"Retry-After": "1"}

    def __init__(self) -> None:
        super().__init__("The request ran into another one or took too long; try again.")


class OverloadedError(UnavailableError):
    code = "overloaded"
    title = "Too much to do"
    headers = {"Retry-After": "1"}

    def __init__(self) -> None:
        super().__init__("Too many requests wait for the database. Nothing was written; try again.")


class OutcomeUnknownError(UnavailableError):
    """The one failure after which something may have been written: COMMIT went unanswered."""

    code = "outcome_unknown"
    title = "Outcome not known"

    def __init__(self) -> None:
        super().__init__(
            "The connection to the database was lost while the request was being committed. "
            "It may have been written; repeat with the same Idempotency-Key."
        )


class DatabaseReadOnlyError(UnavailableError):
    code = "database_read_only"
    title = "Database takes no writes"

    def __init__(self) -> None:
        super().__init__(
            "The database can only be read at the moment, as during a failover. Nothing was "
            "written; reading goes on. Try again."
        )


class DatabaseDiskFullError(UnavailableError):
    code = "database_disk_full"
    title = "Disk of the database full"
    headers = {"Retry-After": "30"}

    def __init__(self) -> None:
        super().__init__(
            "The disk of the database has no room left. Nothing was written; reading and deleting "
            "go on. Try again when there is room."
        )


class UnstorableTextError(UnprocessableError):
    code = "unstorable_text"
    title = "Text cannot be stored"

    def __init__(self) -> None:
        super().__init__("A text holds a character that PostgreSQL cannot store.")


_GONE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
)
# The driver has one class for a connection it lost and for calls it was handed wrongly, which
# are bugs of ours; only the words tell them apart.
_LOST = (
    "connection is closed",
    "another operation",
    "pool is clos",
    "released back to the pool",
    # What a pool says of a connection whose server was killed while it was being opened.
    '"failed" state',
    "protocol state",
    "protocol error",
)
_BUSY = (
    TimeoutError,
    PoolTimeoutError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    # A write raced with a delete; the next try finds nothing and says so.
    asyncpg.ForeignKeyViolationError,
)
_TEXT = (asyncpg.UntranslatableCharacterError, asyncpg.CharacterNotInRepertoireError)


def origin(error: BaseException) -> BaseException:
    """What the driver raised, without SQLAlchemy's wrapping."""
    if isinstance(error, DBAPIError):
        return getattr(error.orig, "__cause__", None) or error.orig or error
    return error


def is_lost(error: BaseException) -> bool:
    """Whether the connection was lost."""
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):
        return any(words in str(error) for words in _LOST)
    return isinstance(error, _GONE)


def translate(error: BaseException) -> DomainError | None:
    """The documented error behind a driver's, or None when it is a bug of ours."""
    cause = origin(error)
    if isinstance(cause, asyncpg.ReadOnlySQLTransactionError):
        return DatabaseReadOnlyError()
    if isinstance(cause, asyncpg.DiskFullError):
        return DatabaseDiskFullError()
    # TimeoutError is an OSError, so the order matters.
    if isinstance(cause, _BUSY):
        return DatabaseBusyError()
    if is_lost(cause):
        return DatabaseUnavailableError()
    if isinstance(cause, _TEXT):
        return UnstorableTextError()
    return None


# Citus names a constraint of a shard after the table's, followed by the shard's number; none of
# ours ends in a number.
_SHARD = re.compile(r"_[0-9]+\Z")


def violated_constraint(error: IntegrityError) -> str | None:
    """Name of the violated constraint as the schema has it, or None when the driver gave none."""
    cause = getattr(error.orig, "__cause__", None) if error.orig else None
    name: str | None = getattr(cause, "constraint_name", None)
    return name and _SHARD.sub("", name)


@contextmanager
def conflicts(named: Mapping[str, DomainError]) -> Iterator[None]:
    """Raise the error named for a violated constraint.

    Raises:
        IntegrityError: another constraint was violated.

    """
    try:
        yield
    except IntegrityError as error:
        conflict = named.get(violated_constraint(error) or "")
        if conflict is None:
            raise
        raise conflict from error


@dataclass(frozen=True, slots=True)
class DiskReserve:
    """How much stays free.

    Args:
        free_bytes: asks the file system, which takes microseconds.
        reserve_bytes: with less than this nothing is stored; 0 never refuses.

    """

    free_bytes: Callable[[], int]
    reserve_bytes: int

    @property
    def is_touched(self) -> bool:
        """Whether less is free than should be."""
        return self.reserve_bytes > 0 and self.free_bytes() < self.reserve_bytes

    def refuse_touched(self) -> None:
        """Raises DatabaseDiskFullError."""
        if self.is_touched:
            raise DatabaseDiskFullError
