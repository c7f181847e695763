"""Everything a call can fail with, by family.

KememError
├── ConfigurationError        no key, or an address that is none; nothing was sent
├── ConnectionFailedError     nobody answered, or the line broke
├── TimedOutError             not done within the time the caller gave
├── UnexpectedAnswerError     what answered is not KeMem, or an incompatible release
├── JobFailedError            a job that was waited for is dead or was cancelled
└── ApiError                  the service refused; `code` says why
    ├── UnauthenticatedError  401
    ├── ForbiddenError        403
    ├── NotFoundError         404
    ├── ConflictError         409
    ├── UnprocessableError    422
    ├── RateLimitedError      429, with `retry_after` in seconds
    └── UnavailableError      502, 503, 504

Each carries a stable `code`. None holds a key, or anything that was to be remembered.
"""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class KememError(Exception):
    """Base of everything the client raises by itself, but for wrong arguments."""

    code: str = "kemem_error"


class ConfigurationError(KememError):
    """The client does not know where to go, or with which key; the sentence says how to mend it."""

    code = "configuration"


class ConnectionFailedError(KememError):
    """The service could not be reached, or hung up before it had answered.

    What was sent may have had its effect all the same.
    """

    code = "connection_failed"


class TimedOutError(KememError):
    """It was not done within the time given. It may still be done."""

    code = "timed_out"


class UnexpectedAnswerError(KememError):
    """The address answers, and not as KeMem does."""

    code = "unexpected_answer"


class JobFailedError(KememError):
    """The job is dead or was cancelled, and nothing came of it.

    `code` is the job's own `error_code`, or its status when it has none.
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
    """One part of a request that is not valid."""

    location: str
    detail: str


class ApiError(KememError):
    """The service refused.

    Args:
        status: of HTTP.
        code: stable; branch on this. `http_error` when the answer was no problem document.
        detail: for people.
        errors: the fields at fault, all of them.
        request_id: finds the request in the log of the service.
        retry_after: seconds after which it is worth trying again.
        problem: the whole document, with members of its own such as `reasons`.

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
        # All of them, so that the error survives pickling on its way out of a worker process.
        super().__init__(status, code, detail, errors, request_id, retry_after, problem)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.request_id = request_id
        self.retry_after = retry_after
        self.problem = problem or {}

    def __str__(self) -> str:
        said = (
            f"{self.status} {self.code}: {self.detail}"
            if self.detail
            else (f"{self.status} {self.code}")
        )
        faults = "".join(f" {fault.location}: {fault.detail}." for fault in self.errors)
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{said}{faults}{request}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.status} {self.code}>"


class UnauthenticatedError(ApiError):
    """The key is missing, unknown, expired or revoked."""


class ForbiddenError(ApiError):
    """The key may not do this."""


class NotFoundError(ApiError):
    """There is no such thing for this key; what is another's reads the same."""


class ConflictError(ApiError):
    """The present state forbids it: a duplicate, another version, a missing `confirm`."""


class UnprocessableError(ApiError):
    """Fields are not valid, see `errors`; or the gate refused, see `problem["reasons"]`."""


class RateLimitedError(ApiError):
    """A limit is reached; `retry_after` says for how many seconds."""


class UnavailableError(ApiError):
    """The service, or something it needs, does not work for now."""


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
    """The error that an answer of 400 or more means; `body` is its JSON, or anything else.

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
        FieldFault(".".join(map(str, one.get("location", ()))), str(one.get("detail", "")))
        for one in errors
        if isinstance(one, Mapping)
    )
