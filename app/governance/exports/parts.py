"""Reading a part of an export: every line is checked against its table.

A vector whose length differs from that of its model would break every search that compares it,
and so would a message of one piece, or pieces that do not follow one another.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any, Final

from pydantic_core import from_json, to_json
from sqlalchemy import Table

from app.governance.exports.columns_sql import fault
from app.governance.exports.schemas import FORMAT, MOST_LISTED, InvalidImportError
from app.governance.exports.scope_sql import (
    TABLE_OF,
    columns_of,
    key_of,
    may_be_left_out,
    stub_columns,
)

# `Embedder.name` ends with it.
_DECLARED: Final = re.compile(r":([1-9][0-9]{0,5})\Z")


class VectorLengths:
    """Length of each model's vectors: from its name, else from the first vector in the part."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}

    def faults(self, row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Faults of the vectors of a checked row and of its code: column and reason."""
        yield from _faults_of_pieces(row)
        vector, model, code = row.get("embedding"), row.get("embedding_model"), row.get("code")
        # A list of vectors is written as one of texts.
        lengths = [vector.count(",") + 1 for vector in row.get("piece_embeddings") or ()]
        if vector is not None:
            lengths.insert(0, len(vector))
        if not model or not lengths:
            return
        declared = _DECLARED.search(model)
        length = int(declared[1]) if declared else self._first.setdefault(model, lengths[0])
        why = "as its model says" if declared else "as the first of its model"
        if vector is not None:
            if lengths.pop(0) != length:
                yield "embedding", f"must have {length} numbers, {why}"
            elif declared and isinstance(code, str) and len(code) != length:
                yield "code", f"must have {length} bits, one for each number of the vector"
        if any(found != length for found in lengths):
            yield "piece_embeddings", f"must have {length} numbers each, {why}"


def _faults_of_pieces(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Faults of what is known of each piece of a message: column and reason."""
    ends = row.get("piece_ends")
    # A text of one piece has none.
    if ends is not None and (len(ends) < 2 or any(a >= b for a, b in pairwise([0, *ends]))):
        yield "piece_ends", "must be two or more, the first above 0 and each above the one before"
    pieces = len(ends or ())
    for name in ("piece_terms", "piece_term_counts", "piece_embeddings"):
        if (known := row.get(name)) is None and name == "piece_embeddings":
            continue
        if len(known or ()) != pieces:
            yield name, f"must have {pieces} entries, as many as `piece_ends`"


Fault = tuple[Sequence[str], str]


@dataclass(frozen=True, slots=True)
class ExportedLine:
    """A row to be written; a `stub` only needs a row with its key to exist."""

    number: int
    noun: str
    row: dict[str, Any]
    stub: bool
    json: bytes
    """The row as it was written: a number keeps its zeros."""

    @property
    def table(self) -> Table:
        return TABLE_OF[self.noun]

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple(self.row[column.name] for column in key_of(self.table))

    def fault(self, *where: str, detail: str) -> Fault:
        return [str(self.number), *where], detail


@dataclass(frozen=True, slots=True)
class ImportPart:
    """Rows to be written, and when they were exported: None where the manifest has no time."""

    lines: list[ExportedLine]
    created_at: datetime | None

    def user_ids(self) -> set[str]:
        """Users that the rows belong or refer to."""
        return {line.row["user_id"] for line in self.lines if line.row.get("user_id") is not None}


def read_part(body: bytes) -> ImportPart:
    """The rows of a part: manifest, rows, and an end line when the part is a whole export.

    Raises:
        InvalidImportError: names the lines, counted from 1.

    """
    texts = body.split(b"\n")
    found: list[ExportedLine] = []
    faults: list[Fault] = []
    lengths = VectorLengths()
    end = 0
    created_at: datetime | None = None
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        if end:
            faults.append(([str(number)], "nothing may follow the end"))
            break
        try:
            value = _object(text)
            kind = value.get("type")
            if number == 1:
                created_at = _check_manifest(value)
            elif kind == "end":
                _check_end(value, texts, number, found)
                end = number
            else:
                line, wrong = _line(number, value, text, lengths)
                faults += wrong
                found.append(line)
        except ValueError as error:
            faults.append(([str(number)], str(error)))
        if len(faults) >= MOST_LISTED or (faults and number == 1):
            break
    if not body.strip():
        faults.append((["1"], "must be the manifest of an export"))
    if faults:
        raise InvalidImportError(faults)
    return ImportPart(found, created_at)


def groups(lines: Sequence[ExportedLine]) -> Iterator[list[ExportedLine]]:
    """Runs of lines that one statement can write: of a table, with the same columns."""
    for _, group in groupby(lines, lambda line: (line.noun, line.stub, frozenset(line.row))):
        yield list(group)


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError:
        raise ValueError("is not readable as JSON") from None
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object")  # noqa: TRY004 (the message is shown to the caller)
    return value


def _check_manifest(value: dict[str, Any]) -> datetime | None:
    """When the export was made, if it says so."""
    if value.get("type") != "manifest":
        raise ValueError("must be the manifest of the export, which begins every part")
    if value.get("format") != FORMAT or isinstance(value.get("format"), bool):
        raise ValueError(f"is of another format than {FORMAT}, which this release reads")
    if "created_at" not in value:
        return None
    try:
        created_at = datetime.fromisoformat(value["created_at"])
    except (TypeError, ValueError):
        created_at = None
    if created_at is None or created_at.tzinfo is None:
        raise ValueError("must say in `created_at` a time with its offset")
    return created_at


def _check_end(
    value: dict[str, Any], texts: Sequence[bytes], number: int, found: Sequence[ExportedLine]
) -> None:
    before = b"".join(text + b"\n" for text in texts[: number - 1])
    counts: dict[str, int] = {}
    for line in found:
        counts[line.noun] = counts.get(line.noun, 0) + 1
    if value.get("sha256") != hashlib.sha256(before).hexdigest() or value.get("counts") != counts:
        raise ValueError("does not fit the lines before it: they were altered, or some are missing")


def _line(
    number: int, value: dict[str, Any], text: bytes, lengths: VectorLengths
) -> tuple[ExportedLine, list[Fault]]:
    noun, row, stub = value.get("type"), value.get("row"), value.get("parent", False)
    table = TABLE_OF.get(noun) if isinstance(noun, str) else None
    if table is None or not isinstance(noun, str):
        raise ValueError("is of a type that this release does not know")
    if not isinstance(row, dict) or not isinstance(stub, bool):
        raise ValueError("must have a `row`, and may have `parent`, true or false")  # noqa: TRY004
    unknown = value.keys() - {"type", "row", "parent"}
    if unknown:
        raise ValueError("may have `type`, `row` and `parent` alone")
    line = ExportedLine(number, noun, row, stub, _row_in(text, noun, row))
    wrong = list(_faults(table, line))
    if not wrong:
        wrong = [line.fault("row", name, detail=detail) for name, detail in lengths.faults(row)]
    return line, wrong


def _row_in(text: bytes, noun: str, row: dict[str, Any]) -> bytes:
    """The bytes of the row as the line has them, else the row serialised again."""
    for begin in (b'{"row":', b'{"parent":true,"row":'):
        end = f',"type":"{noun}"}}'.encode()
        if text.startswith(begin) and text.endswith(end):
            return text[len(begin) : -len(end)]
    return to_json(row)


def _faults(table: Table, line: ExportedLine) -> Iterator[Fault]:
    known = {column.name: column for column in columns_of(table)}
    for name in line.row.keys() - known.keys():
        yield line.fault("row", name[:100], detail="is not a column that can be imported")
    for name in _least(table, stub=line.stub) - line.row.keys():
        yield line.fault("row", name, detail="is missing")
    for name in known.keys() & line.row.keys():
        wrong = fault(known[name], line.row[name])
        if wrong is not None:
            yield line.fault("row", name, detail=wrong)


def _least(table: Table, *, stub: bool) -> set[str]:
    if stub:
        return {column.name for column in stub_columns(table)}
    return {
        column.name
        for column in columns_of(table)
        if column.primary_key or not may_be_left_out(column)
    }
