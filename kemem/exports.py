"""Exports as lines of JSON: whole or not, cut into parts, and what became of them."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from kemem.errors import KememError
from kemem.reading import Answer, read
from kemem.writing import Call, path

PART_BYTES = 1024 * 1024
"""How much is sent at a time; a longer line goes alone. The service takes 2 MiB by default."""

_END = b',"type":"end"}'


class BrokenExportError(KememError):
    """What was read is no whole export: it was cut off, or altered."""

    code = "broken_export"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported(Answer):
    """What became of the rows, by kind."""

    inserted: Mapping[str, int] = field(default_factory=dict)
    unchanged: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    """They are there with another content and were left so, or need a row that is not there."""
    conflicts: tuple[Mapping[str, Any], ...] = ()
    """The first of the skipped, each with its kind, its key and why."""
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
    """Some lines that are sent together, behind the manifest."""

    body: bytes
    rows: int


class Watch:
    """Looks at every line of an export as it passes, and says at its end whether it is whole."""

    def __init__(self) -> None:
        self.rows = 0
        self.manifest: Mapping[str, Any] = {}
        self._ended = False
        self._hash = hashlib.sha256()

    def see(self, line: bytes) -> None:
        """The next line, with what ends it.

        Raises:
            BrokenExportError: it cannot stand there.

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
        """Raises BrokenExportError when the export is not whole."""
        if not self._ended:
            raise BrokenExportError("The export is not whole: its last line is missing.")


def watched(lines: Iterable[bytes], watch: Watch | None = None) -> Iterator[bytes]:
    """The lines of an export.

    Raises:
        BrokenExportError: at the line that cannot stand there, or when the end is missing.

    """
    watch = watch or Watch()
    for line in lines:
        watch.see(line)
        yield line
    watch.finish()


def parts(lines: Iterable[bytes]) -> Iterator[Part]:
    """An export in parts that the service takes, in order.

    Raises:
        BrokenExportError: as `watched`; parts before that may have been written.

    """
    manifest = b""
    pending: list[bytes] = []
    size = 0
    for line in watched(lines):
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


def send(part: Part, *, on_conflict: str, dry_run: bool, restore_erased: bool) -> Call[Imported]:
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


def fetch(**query: Any) -> Call[Any]:
    """The call whose answer is the stream."""
    told = {name: str(value) for name, value in query.items() if value is not None}
    return Call("GET", path("export"), lambda data: data, told)


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BrokenExportError("This is no export of KeMem: a line of it is no JSON object.")
    return value


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(one) + Counter(other))
