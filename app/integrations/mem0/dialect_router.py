"""A dialect as an application of its own inside of the service, with its own document.

Nothing redirects, because the clients follow none. The key comes in the scheme of the dialect, and
is checked like every other.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.integrations.mem0.errors import Mem0ApiOffError
from app.platform.http.dependencies import service_of
from app.platform.http.descriptions import describe, read_sentences
from app.platform.values.fields import Document, Id, OwnId, Timestamp
from app.settings import Settings
from app.version import VERSION

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
