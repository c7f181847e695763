"""Every failure the API documents, by family.

DomainError
├── UnauthenticatedError   401
├── ForbiddenError         403
├── NotFoundError          404, also for what belongs to somebody else
├── ConflictError          409
├── UnprocessableError     422, a rule the schema cannot express
├── PreconditionError      428, the version that was read is not named
├── TooManyRequestsError   429, with the seconds to wait
└── UnavailableError       503, for now: try again

A package's own errors are in its `errors.py`, or in its `schemas.py` where they are few; those that
many packages raise are at the end.
"""

from collections.abc import Mapping, Sequence
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
    headers: Mapping[str, str] = {}

    def __init__(self, detail: str, **members: JsonValue) -> None:
        super().__init__(detail)
        self.detail = detail
        self.members = members


class UnauthenticatedError(DomainError):
    """Nobody we know is calling."""

    status = 401
    headers: Mapping[str, str] = {"WWW-Authenticate": "Bearer"}


class ForbiddenError(DomainError):
    """The caller is known, but the key may not do this at all."""

    status = 403


class NotFoundError(DomainError):
    """There is no such thing for this caller; what is another's reads the same."""

    status = 404


class ConflictError(DomainError):
    """The request was well formed, but the current state forbids it."""

    status = 409


class UnprocessableError(DomainError):
    """A rule over several fields is broken; nothing was written."""

    status = 422


class PreconditionError(DomainError):
    """The request would overwrite what the caller may not have seen."""

    status = 428


class TooManyRequestsError(DomainError):
    """A limit of the caller's is reached; nothing was written, and nothing is lost."""

    status = 429

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail, retry_after=retry_after)
        self.headers = {"Retry-After": str(retry_after)}


class UnavailableError(DomainError):
    """Something the service needs does not answer. Nothing was written and a retry is safe,
    but for `OutcomeUnknownError`, which says otherwise.
    """

    status = 503
    headers: Mapping[str, str] = {"Retry-After": "5"}

    is_passing = True
    """Whether it passes by itself, however long that takes: the same request will be served."""


class VersionConflictError(ConflictError):
    code = "version_conflict"
    title = "Changed in the meantime"

    def __init__(self, current: int) -> None:
        super().__init__(
            f"`If-Match` names another version than the current one, {current}. Read again.",
            current_version=current,
        )


class VersionRequiredError(PreconditionError):
    code = "version_required"
    title = "Version not named"

    def __init__(self) -> None:
        super().__init__(
            "Name the `version` you read in `If-Match`, or `*` for whatever it is now."
        )


class IdTakenError(ConflictError):
    """The id exists in the tenant, but not for this caller; nothing more is said."""

    code = "id_taken"
    title = "Id already in use"

    def __init__(self, field: str, value: str) -> None:
        super().__init__(f"The {field} {value} is already in use.", **{field: value})


class IdNotAllowedError(ForbiddenError):
    """The key is bound to a user or an agent, and the id is not one of its own; whether there is
    such an id is not said.
    """

    code = "id_not_allowed"
    title = "Id not allowed"

    def __init__(self, field: str, prefix: str) -> None:
        super().__init__(
            f"This key is bound: a new `{field}` begins with `{prefix}` and has something behind "
            "it, without `:` and `~`. Where it may be left out, the service makes one.",
            field=field,
            prefix=prefix,
        )


class DisabledError(ConflictError):
    code = "disabled"
    title = "Disabled"

    def __init__(self, kind: str, value: str) -> None:
        super().__init__(
            f"The {kind} {value} is disabled: it can be read, and nothing can be written.",
            **{f"{kind}_id": value},
        )


class ConfirmationRequiredError(ConflictError):
    code = "confirmation_required"
    title = "Would delete more"

    def __init__(self, kind: str, holds: dict[str, int]) -> None:
        listed = ", ".join(f"{count} {name}" for name, count in holds.items() if count)
        super().__init__(
            f"This {kind} holds {listed}. Repeat with `confirm=true` to delete them too, or "
            "with `dry_run=true` to only count.",
            holds=dict(holds),
        )


class SelectorRequiredError(UnprocessableError):
    code = "selector_required"
    title = "Nothing selected"

    def __init__(self, location: str, names: Sequence[str]) -> None:
        listed = ", ".join(names)
        super().__init__(
            f"Name at least one of {listed}.",
            errors=[{"location": [location, names[0]], "detail": f"one of {listed} is required"}],
        )


class ConfigurationError(Exception):
    """The service cannot start as configured; the message says how to mend it."""
