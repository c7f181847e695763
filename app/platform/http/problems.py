"""Every failure as RFC 9457 `application/problem+json`, in one shape.

Domain errors, validation, unknown paths and crashes look alike, so a client needs one parser; a
client of another product's dialect gets the shape that it parses (`ERROR_BODY`). Rejected input is
never echoed: it may be a whole conversation.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import JSONResponse, Response
from typing_extensions import override

from app.errors import DomainError
from app.platform.database.failures import origin, translate
from app.platform.work.idempotency import ReplayedAnswer

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"

ErrorBody = Callable[[Mapping[str, Any], int, str, Mapping[str, Any]], tuple[int, dict[str, Any]]]
"""Status and JSON of an error of another shape, from its scope, status, detail and members."""
ERROR_BODY = "kemem.error_body"
"""In a scope: the `ErrorBody` of its errors, where they are no problem documents."""
MOST_FAULTS = 100
"""A body of 2 MiB can hold 150,000 fields that do not belong there."""

LONGEST_NAME = 100
"""Longest name of an unknown field in an error."""


# Kinds of value in a union, as Pydantic names them: a class of ours, a validator, a list. At the
# end of a path a name may be a client's field, so only names that no field has are ours.
_OURS = re.compile(r"[A-Z]\w*$|.*[\[(]")
_OURS_AT_THE_END = re.compile(r"(function-\w+|list|dict|constrained-\w+)(\[|$)")


class FieldError(BaseModel):
    """One field that is not valid."""

    location: list[str] = Field(examples=[["body", "messages", "0", "content"]])
    detail: str


class Problem(BaseModel):
    """An error, for programs (`code`) and for people (`detail`)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["/problems/user_not_found"])
    title: str
    status: int
    detail: str
    instance: str = Field(examples=["/v1/users/ana"])
    code: Annotated[str, Field(description="Stable: branch on this.")]
    request_id: str
    errors: list[FieldError] | None = None


class ProblemResponse(JSONResponse):
    media_type = MEDIA_TYPE

    @override
    def render(self, content: Any) -> bytes:
        # A field's name may be half a surrogate pair, which no encoding can carry.
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def responses_for(*errors: type[DomainError]) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI entries of these errors, so that none is promised that does not exist.

    Their shape is added to the finished document: named here, FastAPI would prepare a validator
    for each of some 900 entries.
    """
    by_status: dict[int, list[type[DomainError]]] = {}
    for error in errors:
        by_status.setdefault(error.status, []).append(error)
    return {
        status: {
            "description": "; ".join(f"`{error.code}`: {error.title}" for error in listed),
        }
        for status, listed in sorted(by_status.items())
    }


def install(app: FastAPI) -> None:
    """Let every expected failure of `app` leave as a problem document.

    A crash is answered by `RequestMiddleware`, which alone still knows the request id.
    """
    app.add_exception_handler(DomainError, _domain)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(StarletteHTTPException, _http)
    app.add_exception_handler(ReplayedAnswer, _replayed)


def answer(
    scope: Mapping[str, Any],
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    members: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> ProblemResponse:
    """A problem document about the request in `scope`, an ASGI scope, or what stands for one."""
    written: ErrorBody | None = scope.get(ERROR_BODY)
    if written is not None:
        status, content = written(scope, status, detail, {"code": code, **(members or {})})
        return ProblemResponse(content, status, dict(headers or {}), media_type="application/json")
    return ProblemResponse(
        {
            "type": f"/problems/{code}",
            "title": title,
            "status": status,
            "detail": detail,
            "instance": scope["path"],
            "code": code,
            "request_id": scope.get("state", {}).get("request_id", ""),
            **(members or {}),
        },
        status_code=status,
        headers=dict(headers or {}),
    )


def of(scope: Mapping[str, Any], error: DomainError) -> ProblemResponse:
    """The document of one domain error."""
    return answer(
        scope,
        status=error.status,
        code=error.code,
        title=error.title,
        detail=error.detail,
        members=error.members,
        headers=error.headers,
    )


async def _domain(request: Request, error: Exception) -> Response:
    assert isinstance(error, DomainError)  # noqa: S101 (registered for this class alone)
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        cause = error.__cause__
        log.warning(
            "request_unavailable",
            code=error.code,
            error=None if cause is None else type(origin(cause)).__name__,
        )
    return of(request.scope, error)


def location_of(parts: Sequence[int | str]) -> list[str]:
    """The location of a fault in the client's names: without the names of our classes, which
    Pydantic inserts where a field takes several types of values.
    """
    if parts[0] not in {"body", "query"}:
        return [str(part)[:LONGEST_NAME] for part in parts]
    last = len(parts) - 1
    return [
        str(part)[:LONGEST_NAME]
        for place, part in enumerate(parts)
        if not (_OURS if place < last else _OURS_AT_THE_END).match(str(part))
    ]


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 (as above)
    found = error.errors()
    faults = [
        {
            "location": location_of(fault["loc"]),
            "detail": fault["msg"].removeprefix("Value error, "),
        }
        for fault in found[:MOST_FAULTS]
    ]
    return answer(
        request.scope,
        status=422,
        code="invalid_request",
        title="Request is not valid",
        detail="One or more fields are not valid; see `errors`."
        if len(found) <= MOST_FAULTS
        else f"{len(found)} things are not valid; `errors` holds the first {MOST_FAULTS}.",
        members={"errors": faults},
    )


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)  # noqa: S101 (as above)
    if isinstance(error.__cause__, DomainError):
        # FastAPI says of whatever is raised while a body is read that it could not be parsed.
        return await _domain(request, error.__cause__)
    if error.status_code == HTTPStatus.BAD_REQUEST:
        # FastAPI could not read the body at all: too deep, or not text.
        return answer(
            request.scope,
            status=422,
            code="invalid_request",
            title="Request is not valid",
            detail="The body is not JSON that can be read; see `errors`.",
            members={"errors": [{"location": ["body"], "detail": "not readable as JSON"}]},
        )
    status = HTTPStatus(error.status_code)
    return answer(
        request.scope,
        status=status,
        code={404: "path_not_found", 405: "method_not_allowed"}.get(status, "http_error"),
        title=status.phrase,
        detail={
            404: "There is no such path; /docs lists all.",
            405: "This path does not take that method; /docs lists all.",
        }.get(status, status.phrase),
        headers=error.headers,
    )


async def _replayed(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ReplayedAnswer)  # noqa: S101 (as above)
    return Response(
        error.body,
        status_code=error.status,
        media_type="application/json",
        headers={"Idempotency-Replayed": "true"},
    )


def unexpected(scope: Mapping[str, Any], error: Exception) -> ProblemResponse:
    """The document of an unexpected error; its details are only logged."""
    known = translate(error)
    if known is not None:
        log.warning("request_unavailable", code=known.code, error=type(origin(error)).__name__)
        return of(scope, known)
    log.error("request_crashed", error=type(error).__name__, exc_info=error)
    return answer(
        scope,
        status=500,
        code="internal_error",
        title="Internal error",
        detail="Something broke on our side. The request_id finds it in the log.",
    )
