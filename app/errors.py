"""Every failure the API documents, by family.

DomainError
├── UnauthenticatedError   401
├── ForbiddenError         403
├── NotFoundError          404, also for what belongs to somebody else
├── ConflictError          409
├── PreconditionError      428
├── UnprocessableError     422, a rule the schema cannot express
├── TooManyRequestsError   429
├── NotBuiltError          501
└── UnavailableError       503, safe to retry

A room's own errors are in its `errors.py`.
"""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import JsonValue


class DomainError(Exception):
    """Base of every error the API documents.

    `code` is a promise: clients branch on it, so it never changes once released.
    `detail` is for people and may be reworded at any time.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, detail: str, **members: JsonValue) -> None:
        super().__init__(detail)
        self.detail = detail
        self.members = members


class UnauthenticatedError(DomainError):
    """Nobody we know is calling."""

    status = 401
    headers: ClassVar[Mapping[str, str]] = {"WWW-Authenticate": "Bearer"}


class ForbiddenError(DomainError):
    """The caller is known, but the key may not do this at all."""

    status = 403


class NotFoundError(DomainError):
    """There is no such thing for this caller; what is another's reads the same."""

    status = 404


class ConflictError(DomainError):
    """The request was well formed, but the current state forbids it."""

    status = 409


class PreconditionError(DomainError):
    """The request must say which version it changes."""

    status = 428


class UnprocessableError(DomainError):
    """A rule over several fields is broken; nothing was written."""

    status = 422


class TooManyRequestsError(DomainError):
    """A limit is used up for now."""

    status = 429
    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "60"}


class NotBuiltError(DomainError):
    """A documented ability that this release does not have."""

    status = 501


class UnavailableError(DomainError):
    """Something the service needs does not answer; nothing was written; safe to retry."""

    status = 503
    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "5"}


class ConfigurationError(Exception):
    """The service cannot start as configured; the message says how to mend it."""
