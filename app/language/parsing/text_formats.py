"""Formats that are text themselves, read without a library: plain, Markdown, JSON, JSON Lines, CSV.

JSON comes as each value with the path to it, a record per paragraph; CSV as `column: value`, row by
row, so that a number is read with what it is of.
"""

import csv
import json
from collections.abc import Iterator
from io import StringIO
from typing import Any, Final

from app.language.parsing.decoding import decoded
from app.language.parsing.documents import Document, DocumentLimits, ParseError, Parser, checked

DEEPEST: Final = 64

_MALFORMED = "It is no JSON that can be read."
_DELIMITERS: Final = ",;\t|"


def read_plain_text(content: bytes, limits: DocumentLimits) -> Document:
    """The text as it stands, decoded.

    Raises:
        ParseError: it is no text, or too long.

    """
    return checked(Document(decoded(content)), limits)


def read_json(content: bytes, limits: DocumentLimits) -> Document:
    """The values of a JSON document, or of each line of JSON Lines.

    Raises:
        ParseError: it is no text or no JSON, nested too deep, empty or too long.

    """
    text = decoded(content)
    try:
        records = _json_records(text)
        blocks = ["\n".join(_json_lines(record, "", 0)) for record in records]
    except (ValueError, RecursionError):
        raise ParseError("malformed", _MALFORMED) from None
    return checked(Document("\n\n".join(block for block in blocks if block)), limits)


def _json_records(text: str) -> list[Any]:
    """What is read apart: the members of a list, or the lines of JSON Lines."""
    try:
        value = json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        return [json.loads(line) for line in lines]
    return value if isinstance(value, list) else [value]


def _json_lines(value: Any, path: str, depth: int) -> Iterator[str]:
    """The values below `value`, a line each, with the path to it.

    Raises:
        ParseError: they are nested too deep.

    """
    if depth > DEEPEST:
        raise ParseError("malformed", f"It is nested deeper than {DEEPEST} levels.")
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _json_lines(inner, f"{path}.{name}" if path else name, depth + 1)
    elif isinstance(value, list):
        if all(not isinstance(inner, dict | list) for inner in value):
            shown = ", ".join(_json_value(inner) for inner in value)
            if shown:
                yield f"{path}: {shown}" if path else shown
            return
        for number, inner in enumerate(value, 1):
            yield from _json_lines(inner, f"{path} {number}".strip(), depth + 1)
    elif value not in {None, ""}:
        yield f"{path}: {_json_value(value)}" if path else _json_value(value)


def _json_value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    # Half a surrogate pair is no text.
    return str(value).replace("\x00", "").encode("utf-8", "replace").decode()


def read_csv(content: bytes, limits: DocumentLimits) -> Document:
    """The rows of a table, each a paragraph.

    Raises:
        ParseError: it is no text or no table, empty or too long.

    """
    text = decoded(content)
    csv.field_size_limit(limits.characters)
    try:
        rows = list(_csv_rows(text))
    except csv.Error:
        raise ParseError("malformed", "Its rows cannot be told apart.") from None
    return checked(Document("\n\n".join(rows)), limits)


def _csv_rows(text: str) -> Iterator[str]:
    reader = csv.reader(StringIO(text, newline=""), delimiter=_csv_delimiter(text))
    rows = (row for row in reader if any(cell.strip() for cell in row))
    header = [name.strip() for name in next(rows, [])]
    alone = True
    for row in rows:
        alone = False
        yield "\n".join(_csv_cells(header, row))
    if alone and any(header):
        yield ", ".join(name for name in header if name)


def _csv_cells(header: list[str], row: list[str]) -> Iterator[str]:
    for number, cell in enumerate(row):
        value = " ".join(cell.split())
        name = header[number] if number < len(header) else ""
        if value:
            yield f"{name or f'column {number + 1}'}: {value}"


def _csv_delimiter(text: str) -> str:
    """The character that most often stands in the header; a comma when none does."""
    header = text.lstrip("\n").partition("\n")[0]
    return max(_DELIMITERS, key=header.count)


PLAIN_TEXT: Final = Parser("text/1", read_plain_text)
JSON: Final = Parser("json/1", read_json)
CSV: Final = Parser("csv/1", read_csv)
