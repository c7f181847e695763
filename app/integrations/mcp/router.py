"""POST /mcp: the Model Context Protocol over streamable HTTP"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import override

from app.identity.tenants.principal import IdempotencyKeyDep, ReaderDep
from app.integrations.mcp.server import IDEMPOTENCY_KEY, exchange
from app.integrations.mcp.toolset import OriginNotAllowedError

# A message of JSON-RPC has no place in the document of a REST API.
router = APIRouter(include_in_schema=False)


@router.post("/mcp")
async def mcp(request: Request, _principal: ReaderDep, key: IdempotencyKeyDep) -> Response:
    """Answer one message; there are no streams, and no sessions."""
    refuse_origin(request.headers.get("Origin"))
    request.scope[IDEMPOTENCY_KEY] = key
    return _Exchange(await request.body())


class _Exchange(Response):
    """The answer of the protocol to a body that was read."""

    def __init__(self, asked: bytes) -> None:
        super().__init__()
        self._asked: bytes | None = asked

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_again() -> Message:
            if self._asked is None:
                return await receive()
            asked, self._asked = self._asked, None
            return {"type": "http.request", "body": asked, "more_body": False}

        await exchange(scope, receive_again, send)


def refuse_origin(origin: str | None) -> None:
    """Refuse what a browser sends for a page that is not of this machine.

    A page may have its name resolved to this machine after it was loaded; its origin it cannot
    change. Programs send none.

    Raises OriginNotAllowedError.
    """
    if origin is None:
        return
    try:
        host = urlsplit(origin).hostname or ""
        if host == "localhost" or ip_address(host).is_loopback:
            return
    except ValueError:
        pass
    raise OriginNotAllowedError
