"""What a failing database looks like to a caller: busy, gone, or too slow; never its text."""

from typing import ClassVar

import asyncpg
from sqlalchemy.exc import DBAPIError
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
    headers: ClassVar[dict[str, str]] = {"Retry-After": "1"}

    def __init__(self) -> None:
        super().__init__("The request ran into another one or took too long; try again.")


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
    asyncpg.InterfaceError,
    asyncpg.TooManyConnectionsError,
)
_BUSY = (
    TimeoutError,
    PoolTimeoutError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)
_TEXT = (asyncpg.UntranslatableCharacterError, asyncpg.CharacterNotInRepertoireError)


def translate(error: BaseException) -> DomainError | None:
    """The documented error behind a driver's, or None when it is a bug of ours."""
    cause: BaseException | None = error
    if isinstance(error, DBAPIError):
        cause = getattr(error.orig, "__cause__", None) or error.orig
    # TimeoutError is an OSError, so the order matters.
    if isinstance(cause, _BUSY):
        return DatabaseBusyError()
    if isinstance(cause, _GONE):
        return DatabaseUnavailableError()
    if isinstance(cause, _TEXT):
        return UnstorableTextError()
    return None
