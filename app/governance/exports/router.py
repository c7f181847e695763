"""/v1/export and /v1/import."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Final

import structlog
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import override

from app.governance.exports.import_service import ImportService
from app.governance.exports.schemas import (
    MEDIA_TYPE,
    ErasedError,
    ExportLine,
    ExportQuery,
    ExportsBusyError,
    ImportConflictError,
    ImportReport,
    InvalidImportError,
    RowImportQuery,
)
from app.governance.exports.service import ExportService
from app.identity.agents.errors import AgentNotFoundError
from app.identity.projects.schemas import ProjectNotFoundError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    AdminDep,
    IdempotencyKeyDep,
    OwnReaderDep,
)
from app.identity.users.schemas import UserNotFoundError
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.work.unit import MemoryDisabledError

log = structlog.get_logger()

router = APIRouter(prefix="/v1", tags=["exports"], responses=responses_for(*KEY_ERRORS))

_LINES: Final[dict[str, Any]] = {
    "schema": {
        "type": "string",
        "contentMediaType": MEDIA_TYPE,
        "contentSchema": {"$ref": "#/components/schemas/ExportLine"},
        "description": "One object per line.",
    }
}
"""Text for a generator of clients; a line is no JSON document that it could read as a whole."""

_BYTES: Final[dict[str, Any]] = {
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
}
"""The same lines for generators that leave out a route with a body of a type unknown to them."""

PIECE_BYTES: Final = 65_536
"""How much is sent at a time: small enough for a slow reader to take in time."""


class _StalledError(Exception):
    """The reader takes nothing."""


class _Lines(StreamingResponse):
    """A stream that closes its source, also when the caller disconnects or stops reading; the
    answer then has no end line.
    """

    media_type = MEDIA_TYPE

    def __init__(
        self,
        first: bytes,
        rest: AsyncIterator[bytes],
        stalled_seconds: float,
        status_code: int = 200,
    ) -> None:
        self._rest = rest
        self._stalled_seconds = stalled_seconds
        super().__init__(_cut(first, rest), status_code)

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(self._stalled_seconds):
                    await send(message)
            except TimeoutError:
                raise _StalledError from None

        try:
            async with aclosing(self._rest):  # type: ignore[type-var] # a generator
                await super().__call__(scope, receive, send_in_time)
        except _StalledError:
            # The server closes the connection of an answer that was not ended.
            log.warning("export_stalled")


async def _cut(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for page in rest:
        for start in range(0, len(page), PIECE_BYTES):
            yield page[start : start + PIECE_BYTES]


@router.get(
    "/export",
    response_class=_Lines,
    responses={
        200: {
            "model": ExportLine,
            "content": {MEDIA_TYPE: _LINES},
            "description": "One JSON object per line. Without an `end` the file is not whole.",
        },
        **responses_for(
            UserNotFoundError, AgentNotFoundError, ProjectNotFoundError, ExportsBusyError
        ),
    },
)
async def export_rows(
    query: Annotated[ExportQuery, Query()],
    principal: OwnReaderDep,
    service: Annotated[ExportService, provided(ExportService)],
) -> StreamingResponse:
    """Stream all rows, or those of one user, agent or project, as one snapshot."""
    lines = service.export(principal, query)
    # What can be refused is refused before the answer begins.
    return _Lines(await anext(lines), lines, service.stalled_seconds)


@router.post(
    "/import",
    openapi_extra={"requestBody": {"required": True, "content": {MEDIA_TYPE: _LINES, **_BYTES}}},
    responses=responses_for(
        InvalidImportError,
        ImportConflictError,
        ErasedError,
        MemoryDisabledError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def import_rows(
    request: Request,
    query: Annotated[RowImportQuery, Query()],
    principal: AdminDep,
    service: Annotated[ImportService, provided(ImportService)],
    key: IdempotencyKeyDep,
) -> ImportReport:
    """Write the rows of an export, or of a part that begins with the manifest."""
    return await service.add(principal, await request.body(), query, key=key)
