"""CSV: each row as `column: value`, so that it says by itself what its numbers are."""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import Final

from app.language.parsing.decoding import decoded
from app.language.parsing.documents import Document, Limits, checked
from app.language.parsing.errors import ParseError

NAME: Final = "csv/1"

_DELIMITERS: Final = ",;\t|"


def read(content: bytes, limits: Limits) -> Document:
    """Raises ParseError."""
    text = decoded(content)
    csv.field_size_limit(limits.characters)
    try:
        rows = list(_rendered(text))
    except csv.Error:
        raise ParseError("malformed", "Its rows cannot be told apart.") from None
    return checked(Document("\n\n".join(rows)), limits)


def _rendered(text: str) -> Iterator[str]:
    reader = csv.reader(StringIO(text, newline=""), delimiter=_delimiter(text))
    rows = (row for row in reader if any(cell.strip() for cell in row))
    header = [name.strip() for name in next(rows, [])]
    alone = True
    for row in rows:
        alone = False
        yield "\n".join(_cells(header, row))
    if alone and any(header):
        yield ", ".join(name for name in header if name)


def _cells(header: list[str], row: list[str]) -> Iterator[str]:
    for number, cell in enumerate(row):
        value = " ".join(cell.split())
        name = header[number] if number < len(header) else ""
        if value:
            yield f"{name or f'column {number + 1}'}: {value}"


def _delimiter(text: str) -> str:
    """The sign that most often stands in the header; a comma when none does."""
    header = text.lstrip("\n").partition("\n")[0]
    return max(_DELIMITERS, key=header.count)
