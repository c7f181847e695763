"""The errors of the client; every one is a `KememError` with a stable `code`.

KememError
├── ConfigurationError        no key, or no valid address; nothing was sent
├── ConnectionFailedError     the service was not reached, or hung up
├── TimedOutError             not done within the given time; it may still be done
├── UnexpectedAnswerError     the answer is not one of KeMem, or of an incompatible release
├── JobFailedError            the job failed or was cancelled
└── ApiError                  the service refused; `code` says why
    ├── UnauthenticatedError  401
    ├── ForbiddenError        403
    ├── NotFoundError         404
    ├── ConflictError         409
    ├── UnprocessableError    422
    ├── RateLimitedError      429, with `retry_after` in seconds
    └── UnavailableError      502, 503, 504

No error holds a key or content that was sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class KememError(Exception):
    """Base of all errors of the client. Wrong arguments raise ValueError or TypeError instead."""

    code: str = "kemem_error"


class ConfigurationError(KememError):
    """The address or the key is missing or malformed; the message says how to fix it."""

    code = "configuration"


class ConnectionFailedError(KememError):
    """The service could not be reached, or hung up before it answered.

    The request may still have had its effect.
    """

    code = "connection_failed"


class TimedOutError(KememError):
    """The call or the job was not done within the given time. It may still be done."""

    code = "timed_out"


class UnexpectedAnswerError(KememError):
    """Something answers at the address, but not as KeMem does."""

    code = "unexpected_answer"


class JobFailedError(KememError):
    """The job failed for good (status `dead`) or was cancelled.

    `code` is the job's `error_code`, or its status if it has none.
    """

    def __init__(self, job_id: str, status: str, code: str | None, detail: str | None) -> None:
        super().__init__(job_id, status, code, detail)
        self.job_id = job_id
        self.status = status
        self.code = code or status
        self.detail = detail

    def __str__(self) -> str:
        reason = ": ".join(part for part in (self.code, self.detail) if part)
        return f"The job {self.job_id} is {self.status} ({reason})."


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One invalid field of a request."""

    location: str
    detail: str


class ApiError(KememError):
    """The service refused the request.

    Args:
        status: HTTP status.
        code: stable, to branch on; `http_error` if the answer was no problem document.
        detail: for people to read.
        errors: all invalid fields.
        request_id: for finding the request in the log of the service.
        retry_after: seconds after which to try again.
        problem: the whole problem document, with further members such as `reasons`.

    """

    def __init__(
        self,
        status: int,
        code: str = "http_error",
        detail: str = "",
        errors: tuple[FieldFault, ...] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        # All arguments, so that the error can be pickled, as worker processes do.
        super().__init__(status, code, detail, errors, request_id, retry_after, problem)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.request_id = request_id
        self.retry_after = retry_after
        self.problem = problem or {}

    def __str__(self) -> str:
        summary = f"{self.status} {self.code}"
        if self.detail:
            summary = f"{summary}: {self.detail}"
        faults = "".join(f" {fault.location}: {fault.detail}." for fault in self.errors)
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{summary}{faults}{request}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.status} {self.code}>"


class UnauthenticatedError(ApiError):
    """The key is missing, unknown, expired or revoked."""


class ForbiddenError(ApiError):
    """The key, or the acting user, may not do this."""


class NotFoundError(ApiError):
    """It does not exist, or belongs to another tenant or user."""


class ConflictError(ApiError):
    """The current state forbids it: a duplicate, a newer version, a missing `confirm`."""


class UnprocessableError(ApiError):
    """Invalid fields, see `errors`; or a memory was rejected, see `problem["reasons"]`."""


class RateLimitedError(ApiError):
    """A limit is reached, for `retry_after` seconds."""


class UnavailableError(ApiError):
    """The service, or something it needs, is temporarily not working."""


FAMILIES: Mapping[int, type[ApiError]] = {
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    422: UnprocessableError,
    429: RateLimitedError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def error_of(
    status: int, body: object, *, retry_after: float | None = None, hint: str = ""
) -> ApiError:
    """The error for an answer with status 400 or above; `body` is its JSON, if it has any.

    Text that is no problem document is left out: a proxy may have quoted the request.
    """
    problem: Mapping[str, Any] = body if isinstance(body, Mapping) and "code" in body else {}
    detail = " ".join(part for part in (str(problem.get("detail", "")), hint) if part)
    request_id = problem.get("request_id")
    return FAMILIES.get(status, ApiError)(
        status,
        str(problem.get("code", "http_error")),
        detail,
        _faults(problem.get("errors")),
        request_id if isinstance(request_id, str) and request_id else None,
        retry_after,
        problem,
    )


def _faults(errors: object) -> tuple[FieldFault, ...]:
    if not isinstance(errors, list):
        return ()
    return tuple(
        FieldFault(".".join(map(str, fault.get("location", ()))), str(fault.get("detail", "")))
        for fault in errors
        if isinstance(fault, Mapping)
    )
