"""Every expected failure of a command as one sentence; a traceback is a bug of ours."""

import socket

import asyncpg
import httpx2
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from app.console import REFUSED, UNUSABLE
from app.errors import ConfigurationError, DomainError


def sentence_for(error: BaseException) -> tuple[str, int] | None:
    """What to print and the exit code, or None when the failure is not one we expect."""
    match error:
        case ConfigurationError():
            return str(error), UNUSABLE
        case DomainError():
            return error.detail, REFUSED
        case ValidationError():
            return _faults(error), REFUSED
        case httpx2.TransportError():
            return f"The service does not answer ({_one_line(error)}).", REFUSED
        case DBAPIError():
            # The message of SQLAlchemy's own error holds the whole statement.
            cause = getattr(error.orig, "__cause__", None) or error.orig
            sentence = _database_sentence(cause)
        case _:
            sentence = _database_sentence(error)
    return None if sentence is None else (sentence, UNUSABLE)


def _database_sentence(error: BaseException | None) -> str | None:
    match error:
        case asyncpg.LockNotAvailableError():
            return (
                "Other sessions hold a table that must be changed. Nothing was changed; try again."
            )
        case asyncpg.PostgresError() | asyncpg.InterfaceError():
            return f"The database refuses: {_one_line(error)}."
        case ConnectionError() | TimeoutError() | socket.gaierror():
            return (
                f"The database of DATABASE_URL cannot be reached ({_one_line(error)}): check the "
                "address, and that PostgreSQL runs there."
            )
        case OSError():
            return f"{_one_line(error)}."
        case _:
            return None


def _faults(error: ValidationError) -> str:
    """What is wrong with each value; the values themselves may be secret."""
    faults = error.errors(include_input=False, include_url=False)
    told = (
        f"{'.'.join(str(part) for part in fault['loc'])} "
        f"{fault['msg'].removeprefix('Value error, ')}".strip()
        for fault in faults
    )
    return "; ".join(told) + "."


def _one_line(error: BaseException) -> str:
    return (" ".join(str(error).split()) or type(error).__name__).rstrip(".")
