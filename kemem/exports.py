"""Exports as lines of JSON: checking that one is whole, and splitting it into parts to import."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from kemem.answers import Answer, read
from kemem.calls import Call, path
from kemem.errors import KememError

PART_BYTES = 1024 * 1024
"""Size of a part; a longer line is a part of its own. The service accepts 2 MiB by default."""

_END = b',"type":"end"}'


class BrokenExportError(KememError):
    """The export is not whole: it was cut off or altered."""

    code = "broken_export"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported(Answer):
    """Number of imported rows by kind."""

    inserted: Mapping[str, int] = field(default_factory=dict)
    unchanged: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows that exist with other content and were not changed, or refer to a missing row."""
    conflicts: tuple[Mapping[str, Any], ...] = ()
    """The first 100 skipped rows, each with kind, key and reason."""
    dry_run: bool = False

    def __add__(self, other: "Imported") -> "Imported":
        return Imported(
            inserted=_sum(self.inserted, other.inserted),
            unchanged=_sum(self.unchanged, other.unchanged),
            skipped=_sum(self.skipped, other.skipped),
            conflicts=(self.conflicts + other.conflicts)[:100],
            dry_run=other.dry_run,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some lines that are sent together, after the manifest."""

    body: bytes
    rows: int


class ExportCheck:
    """Checks an export line by line, and at its end that it is whole."""

    def __init__(self) -> None:
        self.rows = 0
        self.manifest: Mapping[str, Any] = {}
        self._ended = False
        self._hash = hashlib.sha256()

    def check(self, line: bytes) -> None:
        """Check the next line, its line break included.

        Raises:
            BrokenExportError: the line is cut off, or cannot follow the lines before.

        """
        if self._ended or not line.endswith(b"\n"):
            raise BrokenExportError("The export was cut off in a line, or goes on after its end.")
        if not self.manifest:
            self.manifest = _object(line)
            if self.manifest.get("type") != "manifest":
                raise BrokenExportError("This is no export of KeMem: it begins with no manifest.")
        elif line.rstrip().endswith(_END):
            end = _object(line)
            if end.get("sha256") != self._hash.hexdigest():
                raise BrokenExportError("The export was altered: its checksum does not fit.")
            self._ended = True
        else:
            self.rows += 1
        self._hash.update(line)

    def finish(self) -> None:
        """Raises BrokenExportError if the last line is missing."""
        if not self._ended:
            raise BrokenExportError("The export is not whole: its last line is missing.")


def checked_lines(lines: Iterable[bytes], check: ExportCheck | None = None) -> Iterator[bytes]:
    """The lines of an export, unchanged.

    Raises:
        BrokenExportError: at the first wrong line, or at the end if the last line is missing.

    """
    check = check or ExportCheck()
    for line in lines:
        check.check(line)
        yield line
    check.finish()


def parts(lines: Iterable[bytes]) -> Iterator[Part]:
    """An export in parts that the service accepts, in order.

    Raises:
        BrokenExportError: as `checked_lines`; earlier parts may have been imported.

    """
    manifest = b""
    pending: list[bytes] = []
    size = 0
    for line in checked_lines(lines):
        if not manifest:
            manifest = line
            continue
        if line.rstrip().endswith(_END):
            break
        if pending and size + len(line) > PART_BYTES:
            yield Part(body=manifest + b"".join(pending), rows=len(pending))
            pending, size = [], 0
        pending.append(line)
        size += len(line)
    if pending:
        yield Part(body=manifest + b"".join(pending), rows=len(pending))


class LineSplitter:
    """Splits a stream of bytes into lines; an unfinished line waits for the rest."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that `chunk` completes."""
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join(self._rest) + line + b"\n"
            self._rest.clear()
        if rest:
            self._rest.append(rest)


def broken_off(error: httpx.RequestError) -> BrokenExportError:
    """The error for a connection that failed during an export."""
    return BrokenExportError(f"The export broke off before its end ({type(error).__name__}).")


def import_call(
    part: Part, *, on_conflict: str, dry_run: bool, restore_erased: bool
) -> Call[Imported]:
    query = {"on_conflict": on_conflict, "dry_run": str(dry_run).lower()}
    if restore_erased:
        query["restore_erased"] = "true"
    return Call(
        "POST",
        path("import"),
        lambda data: read(Imported, data),
        query,
        part.body,
        {"Content-Type": "application/x-ndjson", "Idempotency-Key": uuid4().hex},
    )


def export_call(**query: Any) -> Call[Any]:
    """The call that answers with the lines of an export."""
    given = {name: str(value) for name, value in query.items() if value is not None}
    return Call("GET", path("export"), lambda data: data, given)


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BrokenExportError("This is no export of KeMem: a line of it is no JSON object.")
    return value


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(first) + Counter(second))
