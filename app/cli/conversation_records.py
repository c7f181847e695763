"""What files of conversations hold, record by record: JSON objects, each with where it stands.

A record is a line of JSONL, an element of a JSON array, or a whole JSON file.
"""

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Final

EXPORTED: Final = "conversations*.json"
"""What the archive of a chat export calls its conversations; large ones have several files."""

_GZIP: Final = b"\x1f\x8b"


class UnreadableError(Exception):
    """Something cannot be read; the message says where, and why."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object and its place, such as `chats.jsonl, line 3`."""

    place: str
    fields: dict[str, Any]


def records_of(file: Path) -> list[Record]:
    """The records of a file, in its order; those of each file of conversations in an archive.

    Raises:
        UnreadableError: any part of it is no JSON: whose conversation that belongs to is not
            known, so none of the file counts.

    """
    records = [record for name, data in _files(file) for record in _records(name, data)]
    if records and records[0].fields.get("type") == "manifest":
        raise UnreadableError(file.name, "it is an export of KeMem, which `kemem import` reads")
    return records


def _files(file: Path) -> Iterator[tuple[str, bytes]]:
    try:
        if not zipfile.is_zipfile(file):
            yield file.name, file.read_bytes()
            return
        with zipfile.ZipFile(file) as archive:
            names = sorted(
                name for name in archive.namelist() if fnmatch(PurePosixPath(name).name, EXPORTED)
            )
            if not names:
                raise UnreadableError(file.name, f"there is no {EXPORTED} in it")
            for name in names:
                yield f"{file.name}/{name}", archive.read(name)
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        # A RuntimeError asks for a password.
        raise UnreadableError(file.name, f"it cannot be read ({error})") from error


def _records(name: str, data: bytes) -> Iterator[Record]:
    if data.startswith(_GZIP):
        raise UnreadableError(
            name,
            "it is compressed: unpack it; an export of KeMem is for `kemem import`",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableError(f"{name}, line {line}", "it is not UTF-8") from error
    try:
        for line, value in _values(text):
            if not isinstance(value, dict):
                raise UnreadableError(f"{name}, line {line}", "it is no JSON object")
            yield Record(f"{name}, line {line}", value)
    except json.JSONDecodeError as error:
        raise UnreadableError(
            f"{name}, line {error.lineno}", f"it is not JSON ({error.msg})"
        ) from error
    except RecursionError as error:
        raise UnreadableError(name, "it is nested too deeply") from error


def _values(text: str) -> Iterator[tuple[int, Any]]:
    """The elements of an array, or values that follow each other, each with its line.

    Raises JSONDecodeError.
    """
    decoder = json.JSONDecoder()
    at = _next(text, 0)
    in_array = text.startswith("[", at)
    if in_array:
        at = _next(text, at + 1)
    line, counted = 1, 0
    while at < len(text) and not (in_array and text[at] == "]"):
        line, counted = line + text.count("\n", counted, at), at
        value, end = decoder.raw_decode(text, at)
        yield line, value
        at = _next(text, end)
        if in_array and text.startswith(",", at):
            at = _next(text, at + 1)
        elif in_array and not text.startswith("]", at):
            raise json.JSONDecodeError("the array is cut off or lacks a comma", text, at)
    if in_array and _next(text, at + 1) < len(text):
        raise json.JSONDecodeError("something follows the array", text, at + 1)
    if in_array and at >= len(text):
        raise json.JSONDecodeError("the array is cut off", text, len(text))


def _next(text: str, at: int) -> int:
    """Where the next character stands that is not blank."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
