"""A dialect as an application of its own inside of the service, with its own document, and errors
as mem0's clients read them, below its paths and where they miss those.

Nothing redirects, because the clients follow none. The key comes in the scheme of the dialect, and
is checked like every other.

An error is one JSON object whose `detail` and `error` say the same; what we answer with 422 is 400.
"""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.integrations.mem0.errors import Mem0ApiOffError
from app.platform.http.dependencies import service_of
from app.platform.http.descriptions import describe, read_sentences
from app.platform.http.problems import ErrorBody
from app.platform.values.fields import Document, Id, OwnId, Timestamp
from app.platform.version import VERSION
from app.settings import Settings

Headers = list[tuple[bytes, bytes]]

DESCRIPTIONS: Final = Path(__file__).parent / "openapi_descriptions.json"
"""What parameters and fields mean whose code does not say it."""
PLAIN_TYPES: Final = (Document, Id, OwnId, Timestamp)
"""Types whose description says how a value looks, and not what it means."""


class MountedDialect:
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            Mem0ApiOffError: the dialect is switched off.
            What the routes raise; the service around answers it.

        """
        if not service_of(Request(scope), Settings).serves_mem0:
            raise Mem0ApiOffError
        # In the same scope: who calls is asked before the body is read, by the middleware.
        scope["headers"] = self._with_key(scope["headers"])
        await self._router(scope, receive, send)

    async def _document(self, request: Request) -> Response:
        return JSONResponse(self.document(request.scope["root_path"]))

    def document(self, url: str) -> dict[str, Any]:
        """The OpenAPI document of the routes, which are below `url`."""
        document = get_openapi(
            title=self._title, version=VERSION, routes=self._router.routes, servers=[{"url": url}]
        )
        for operation in (entry for path in document["paths"].values() for entry in path.values()):
            # Faults are answered as mem0 does, by other statuses and shapes.
            operation["responses"].pop("422", None)
        for unused in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(unused, None)
        describe(document, read_sentences(DESCRIPTIONS), plain_types=PLAIN_TYPES)
        return document


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


MOST_FAULTS: Final = 20
"""Of a request that is not valid."""

HOSTED: Final = "/mem0"
SERVER: Final = "/mem0-oss"

_SENTENCES: Final = {
    "memory_not_found": "Memory not found!",
    "path_not_found": "There is no such path.",
    "method_not_allowed": "The path does not take this method.",
}
_SERVED: Final = frozenset({"/memories", "/search"})

RequestScope = Mapping[str, Any]
Answer = tuple[int, dict[str, Any]]

_MISSED: Final = frozenset({401, 404, 405, 422})
"""What a client is answered that does not know where its dialect is."""


def error_body(scope: RequestScope) -> ErrorBody | None:
    """How an error of this request is written, if it comes from a client of mem0's.

    A client that calls our own paths is told where its dialect is: it is known by headers that no
    other client sends, or by a path of mem0's server that is none of ours.
    """
    path: str = scope["path"]
    if path.startswith((f"{HOSTED}/", f"{SERVER}/")):
        return _body
    headers = dict(scope["headers"])
    if b"mem0-user-id" in headers or headers.get(b"authorization", b"")[:6].lower() == b"token ":
        return _missed(HOSTED)
    if b"x-api-key" in headers and (path in _SERVED or path.startswith("/memories/")):
        return _missed(SERVER)
    return None


def _missed(served: str) -> ErrorBody:
    hint = (
        f"mem0's clients are served below {served} where MEMORY_MEM0_API is on: end the client's "
        f"host with {served}."
    )

    def body(scope: RequestScope, status: int, detail: str, members: Mapping[str, Any]) -> Answer:
        told = f"{_sentence(detail, members)} {hint}" if status in _MISSED else detail
        return _answer(scope, status, told, members)

    return body


def _body(scope: RequestScope, status: int, detail: str, members: Mapping[str, Any]) -> Answer:
    return _answer(scope, status, _sentence(detail, members), members)


def _answer(scope: RequestScope, status: int, detail: str, members: Mapping[str, Any]) -> Answer:
    content = {
        **members,
        "detail": detail,
        "error": detail,
        "request_id": scope.get("state", {}).get("request_id", ""),
    }
    return (400 if status == HTTPStatus.UNPROCESSABLE_ENTITY else status), content


def _sentence(detail: str, members: Mapping[str, Any]) -> str:
    """What clients show of an error, which show nothing else of it."""
    code = members["code"]
    if code == "gate_rejected":
        return " ".join(
            ["The gate refused it.", *(reason["detail"] for reason in members["reasons"])]
        )
    if code == "invalid_request" and "errors" in members:
        return "; ".join(
            f"{'.'.join(fault['location'][1:]) or fault['location'][0]}: {fault['detail']}"
            for fault in members["errors"][:MOST_FAULTS]
        )
    return _SENTENCES.get(code, detail)
