"""Files in requests: read as a stream, kept outside memory, refused when they are too large."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Final, cast

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.types import Message

from app.errors import DomainError, UnprocessableError

IN_MEMORY_BYTES: Final = 1024 * 1024
FIELD_BYTES: Final = 64 * 1024
MOST_FIELDS: Final = 40
FRAME_BYTES: Final = 256 * 1024
"""Most bytes of a form beside its file: other fields and separators."""


class UploadTooLargeError(DomainError):
    status = 413
    code = "body_too_large"
    title = "Body too large"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A file has at most {limit} bytes here (`MEMORY_UPLOAD_MAX_BYTES`).",
            limit=limit,
            errors=[{"location": ["body", "file"], "detail": f"at most {limit} bytes"}],
        )


class InvalidUploadError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self, detail: str, *location: str) -> None:
        super().__init__(
            "The upload is not valid; see `errors`.",
            errors=[{"location": list(location) or ["body"], "detail": detail}],
        )


@dataclass(frozen=True, slots=True)
class Received:
    """A file of a request, and the other fields of its form.

    Args:
        content: the caller closes it.
        size: in bytes.
        sha256: of the content, computed while it was read.
        fields: texts by name; empty for a raw body.

    """

    content: BinaryIO
    size: int
    sha256: bytes
    file_name: str | None
    content_type: str | None
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)


async def receive_upload(request: Request, limit: int) -> Received:
    """The file in a request: the field `file` of a form, or the whole body.

    Raises:
        UploadTooLargeError: it is longer than `limit`; the rest was not read.
        InvalidUploadError: there is no file in it.

    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit + FRAME_BYTES:
        raise UploadTooLargeError(limit)
    content_type = request.headers.get("content-type")
    if (content_type or "").lower().startswith("multipart/form-data"):
        return await _form(request, limit)
    spooled = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 (closed by the caller)
    content = cast("BinaryIO", spooled)
    length, digest = 0, sha256()
    try:
        async for chunk in request.stream():
            length += len(chunk)
            if length > limit:
                raise UploadTooLargeError(limit)
            digest.update(chunk)
            content.write(chunk)
    except BaseException:
        content.close()
        raise
    return Received(content, length, digest.digest(), None, content_type)


async def _form(request: Request, limit: int) -> Received:
    """A form's file; the form is parsed while it is read, and its bytes are counted.

    Raises InvalidUploadError, UploadTooLargeError.
    """
    length = 0

    async def counted() -> Message:
        """Raises UploadTooLargeError."""
        nonlocal length
        message = await request.receive()
        length += len(message.get("body", b""))
        if length > limit + FRAME_BYTES:
            raise UploadTooLargeError(limit)
        return message

    counting = Request(request.scope, counted)
    try:
        form = await counting.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=FIELD_BYTES)
    except HTTPException as error:
        raise InvalidUploadError(str(error.detail)) from None
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise InvalidUploadError("one field `file` with the file is required", "body", "file")
    if (file.size or 0) > limit:
        with suppress(OSError):
            file.file.close()
        raise UploadTooLargeError(limit)
    fields: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        if isinstance(value, str):
            fields.setdefault(name, []).append(value)
    # The parser reports no parts; reading the whole file would block the event loop.
    size, digest = await asyncio.to_thread(_digested, file.file)
    return Received(file.file, size, digest, file.filename, file.content_type, fields)


def _digested(content: BinaryIO) -> tuple[int, bytes]:
    """Length and digest of a file."""
    size, digest = 0, sha256()
    content.seek(0)
    while chunk := content.read(IN_MEMORY_BYTES):
        size += len(chunk)
        digest.update(chunk)
    return size, digest.digest()
