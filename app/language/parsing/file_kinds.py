"""What a file is, by its bytes, and whether its name and its sender say the same. Pure."""

import mimetypes
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, Final, Literal

import puremagic

from app.language.parsing.decoding import looks_like_text

FileKind = Literal["text", "markdown", "html", "pdf", "docx", "json", "jsonl", "csv"]

CONTENT_TYPES: Final[dict[FileKind, str]] = {
    "text": "text/plain",
    "markdown": "text/markdown",
    "html": "text/html",
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv",
}
KINDS: Final[dict[str, FileKind]] = {name: kind for kind, name in CONTENT_TYPES.items()}

ENDINGS: Final[dict[FileKind, str]] = {
    "text": ".txt", "markdown": ".md", "html": ".html", "pdf": ".pdf", "docx": ".docx",
    "json": ".json", "jsonl": ".jsonl", "csv": ".csv",
}  # fmt: skip

HEAD_BYTES: Final = 4096

_BY_ENDING: Final[dict[str, FileKind]] = {
    ".txt": "text", ".text": "text", ".log": "text", ".md": "markdown", ".markdown": "markdown",
    ".html": "html", ".htm": "html", ".xhtml": "html", ".pdf": "pdf", ".docx": "docx",
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv",
}  # fmt: skip
_BY_TYPE: Final[dict[str, FileKind]] = KINDS | {
    "text/x-markdown": "markdown",
    "application/xhtml+xml": "html",
    "application/jsonl": "jsonl",
    "application/csv": "csv",
    "text/tab-separated-values": "csv",
}
# What programs send that do not know.
_SAYS_NOTHING: Final = {
    "", "application/octet-stream", "application/x-www-form-urlencoded", "binary/octet-stream",
}  # fmt: skip
_MAIN_PART: Final = b"word/document.xml"
_DIRECTORY_BYTES: Final = 1024 * 1024
"""What is read of an archive's directory: the names of some 10,000 parts."""
_ENTRY = struct.Struct("<4s24xHHH12x")
_END = struct.Struct("<4s8xII2x")
_END_BYTES: Final = 64 * 1024 + _END.size
_LOCATOR_BYTES: Final = 20
_END_64_BYTES: Final = 56
_BINARY = re.compile(r"image/|audio/|video/|font/|application/(zip|gzip|x-gzip|x-tar|vnd\.|msword)")
_HTML = re.compile(
    r"\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """Why a file is not taken.

    Args:
        code: `unsupported_media_type` or `type_mismatch`.
        found: what the bytes are, as far as anybody can tell.
        claimed: what the name or the sender said.

    """

    code: Literal["unsupported_media_type", "type_mismatch"]
    found: str
    claimed: str | None = None


def kind_of(file: BinaryIO, file_name: str, content_type: str | None) -> FileKind | RefusedFile:
    """What a file is.

    Bytes say whether it is a PDF, a Word document or text; of which kind a text is, its name
    says, then its sender, then its beginning.

    Args:
        file: read from its beginning, and left anywhere.
        file_name: as it was given.
        content_type: as the sender says, parameters and all.

    """
    file.seek(0)
    head = file.read(HEAD_BYTES)
    claims = _claims(file_name, content_type)
    if b"%PDF-" in head[:1024]:
        return _agreed("pdf", claims)
    if head.startswith(b"PK\x03\x04"):
        if _is_word(file):
            return _agreed("docx", claims)
        return _refused("application/zip", claims)
    if not looks_like_text(head):
        return _refused(_name_of(head), claims)
    return _text_kind(head, claims)


def _claims(file_name: str, content_type: str | None) -> list[str]:
    """What the name and the sender say, as media types, the name first."""
    ending = PurePosixPath(file_name.lower()).suffix
    known = _BY_ENDING.get(ending)
    by_name = CONTENT_TYPES[known] if known else mimetypes.guess_type(file_name)[0]
    by_sender = (content_type or "").partition(";")[0].strip().lower()
    return [claim for claim in (by_name, by_sender) if claim and claim not in _SAYS_NOTHING]


def _agreed(kind: FileKind, claims: list[str]) -> FileKind | RefusedFile:
    """What is no text, unless the name or the sender says something else of it."""
    for claim in claims:
        if claim != CONTENT_TYPES[kind]:
            return RefusedFile("type_mismatch", CONTENT_TYPES[kind], claim)
    return kind


def _refused(found: str, claims: list[str]) -> RefusedFile:
    lie = next((claim for claim in claims if claim in _BY_TYPE), None)
    if lie is not None:
        return RefusedFile("type_mismatch", found, lie)
    return RefusedFile("unsupported_media_type", found)


def _text_kind(head: bytes, claims: list[str]) -> FileKind | RefusedFile:
    for claim in claims:
        if claim in {CONTENT_TYPES["pdf"], CONTENT_TYPES["docx"]} or _BINARY.match(claim):
            return RefusedFile("type_mismatch", "text/plain", claim)
    kinds = [_BY_TYPE[claim] for claim in claims if claim in _BY_TYPE]
    # Programs call any text plain.
    claimed = next((kind for kind in kinds if kind != "text"), None)
    if claimed is not None:
        return claimed
    if not kinds and _HTML.match(head.decode("latin-1")):
        return "html"
    return "text"


def _is_word(file: BinaryIO) -> bool:
    """Whether an archive has the main part of a Word document.

    It is read by hand and no further than `_DIRECTORY_BYTES`: this runs where requests are
    answered, and `zipfile` makes an object of each of a million entries.
    """
    return _MAIN_PART in _parts(_directory(file))


def _directory(file: BinaryIO) -> bytes:
    """The beginning of an archive's directory; nothing when it has none."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END_BYTES))
    tail = file.read(_END_BYTES)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < _END.size:
        return b""
    _, length, _ = _END.unpack_from(tail, place)
    # Where it says that it begins may be a lie, or true of what stood alone once.
    begin = size - len(tail) + place - length
    if tail[max(0, place - _LOCATOR_BYTES) : place].startswith(b"PK\x06\x07"):
        begin -= _LOCATOR_BYTES + _END_64_BYTES
    if begin < 0:
        return b""
    file.seek(begin)
    return file.read(min(length, _DIRECTORY_BYTES))


def _parts(directory: bytes) -> Iterator[bytes]:
    """Names in an archive's directory, as far as it is one."""
    place = 0
    while place + _ENTRY.size <= len(directory):
        mark, name, extra, comment = _ENTRY.unpack_from(directory, place)
        if mark != b"PK\x01\x02":
            return
        place += _ENTRY.size
        yield directory[place : place + name]
        place += name + extra + comment


def _name_of(head: bytes) -> str:
    try:
        found = puremagic.magic_string(head)
    except (puremagic.PureError, ValueError):
        found = []
    return next((match.mime_type for match in found if match.mime_type), "application/octet-stream")
