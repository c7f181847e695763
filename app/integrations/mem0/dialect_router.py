"""A dialect as an application of its own inside of the service, with its own errors and document.

Nothing redirects, because the clients follow none. An error is one JSON object whose `detail` and
`error` say the same; what we answer with 422 is 400 there. The key comes in the scheme of the
dialect, and is checked like every other.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.errors import DomainError
from app.integrations.mem0.errors import Mem0ApiOffError
from app.memory.memories.errors import GateRejectedError, MemoryNotFoundError
from app.platform.http.dependencies import service_of
from app.platform.http.problems import location_of
from app.settings import Settings
from app.version import VERSION

Headers = list[tuple[bytes, bytes]]

MOST_FAULTS: Final = 20
"""Of a request that is not valid."""


class Dialect:
    """The routes of other clients, mounted below a path of theirs."""

    def __init__(
        self, title: str, routers: Iterable[APIRouter], with_key: Callable[[Headers], Headers]
    ) -> None:
        """Serve `routers`; `with_key` writes the key of a request as a bearer token."""
        self._title = title
        self._with_key = with_key
        self._router = APIRouter(redirect_slashes=False)
        for router in routers:
            self._router.include_router(router)
        self._router.add_route("/openapi.json", self._document, include_in_schema=False)
        self._answering = ExceptionMiddleware(
            self._router,
            handlers={
                DomainError: _refused,
                RequestValidationError: _not_valid,
                HTTPException: _http,
            },
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless the dialect is switched off."""
        request = Request(scope)
        if not service_of(request, Settings).serves_mem0:
            await _answer(request, Mem0ApiOffError())(scope, receive, send)
            return
        # In the same scope: who calls is asked before the body is read, by the middleware.
        scope["headers"] = self._with_key(scope["headers"])
        await self._answering(scope, receive, send)

    async def _document(self, request: Request) -> Response:
        document = get_openapi(
            title=self._title,
            version=VERSION,
            routes=self._router.routes,
            servers=[{"url": request.scope["root_path"]}],
        )
        return JSONResponse(document)


def token_as_bearer(headers: Headers) -> Headers:
    """`Authorization: Token …`, as mem0's clients of the hosted API write it, as a bearer token."""
    scheme = b"token "
    return [
        (name, b"Bearer " + value[len(scheme) :])
        if name == b"authorization" and value[: len(scheme)].lower() == scheme
        else (name, value)
        for name, value in headers
    ]


def api_key_as_bearer(headers: Headers) -> Headers:
    """`X-API-Key: …`, as clients of mem0's server write it, as a bearer token.

    A bearer token that is there as well counts: it is how the server takes other keys.
    """
    names = {name for name, _ in headers}
    return [
        (b"authorization", b"Bearer " + value)
        if name == b"x-api-key" and b"authorization" not in names
        else (name, value)
        for name, value in headers
    ]


def _answer(request: Request, error: DomainError) -> Response:
    return _json(
        request,
        400 if error.status == 422 else error.status,
        _sentence(error),
        code=error.code,
        members=error.members,
        headers=error.headers,
    )


def _sentence(error: DomainError) -> str:
    """What clients show of an error, which show nothing else of it."""
    if isinstance(error, MemoryNotFoundError):
        return "Memory not found!"
    if isinstance(error, GateRejectedError):
        reasons = cast("list[dict[str, str]]", error.members["reasons"])
        return " ".join(["The gate refused it.", *(one["detail"] for one in reasons)])
    return error.detail


def _json(
    request: Request,
    status: int,
    detail: str,
    *,
    code: str,
    members: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    content = {
        **(members or {}),
        "detail": detail,
        "error": detail,
        "code": code,
        "request_id": request.scope.get("state", {}).get("request_id", ""),
    }
    # As in `problems.py`: half a surrogate pair in a field's name is no UTF-8.
    text = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    return Response(text, status, dict(headers or {}), media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DomainError)  # noqa: S101 (registered for this class alone)
    return _answer(request, error)


async def _not_valid(request: Request, error: Exception) -> Response:
    """Which fields are not valid, without what was in them."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 (as above)
    faults = [
        f"{'.'.join(location_of(fault['loc'])[1:]) or fault['loc'][0]}: "
        f"{fault['msg'].removeprefix('Value error, ')}"
        for fault in error.errors()[:MOST_FAULTS]
    ]
    return _json(request, 400, "; ".join(faults), code="invalid_request")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (as above)
    if isinstance(error.__cause__, DomainError):
        return _answer(request, error.__cause__)
    detail = {404: "There is no such path.", 405: "The path does not take this method."}
    return _json(
        request,
        error.status_code,
        detail.get(error.status_code, error.detail),
        code={404: "path_not_found", 405: "method_not_allowed"}.get(
            error.status_code, "invalid_request"
        ),
        headers=error.headers,
    )
