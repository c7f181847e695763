"""DOCX by python-docx: paragraphs, headings and tables in their order."""

import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from io import BytesIO
from typing import Final

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table
from docx.text.paragraph import Paragraph
from lxml.etree import LxmlError

from app.language.parsing.documents import Document, DocumentLimits, ParseError, Parser, checked

MOST_PARTS: Final = 5_000
RATIO: Final = 200
"""How many times smaller than itself a part may be packed; prose is some ten times smaller."""
SMALL_PART: Final = 1024 * 1024
"""Below this no ratio is suspicious: styles repeat themselves."""


def read_docx(content: bytes, limits: DocumentLimits) -> Document:
    """Paragraphs, headings and tables in their order.

    Raises:
        ParseError: it is broken, protected, empty, or far too large.

    """
    _refuse_bombs(content, limits)
    try:
        document = docx.Document(BytesIO(content))
        blocks = list(_blocks(document.iter_inner_content()))
    except (
        PackageNotFoundError, LxmlError, zipfile.BadZipFile, KeyError, ValueError, AttributeError,
        IndexError, TypeError, RecursionError, OSError, EOFError, NotImplementedError,
    ):  # fmt: skip
        raise ParseError("malformed", "It is broken, so that Word could not open it.") from None
    return checked(Document("\n\n".join(blocks)), limits)


def _refuse_bombs(content: bytes, limits: DocumentLimits) -> None:
    """Raises ParseError when unpacking would take far more than the file says."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise ParseError("malformed", "It is broken, so that Word could not open it.") from None
    if any(part.flag_bits & 1 for part in parts):
        raise ParseError("encrypted", "It is protected by a password.")
    unpacked = sum(part.file_size for part in parts)
    squeezed = any(
        part.file_size > SMALL_PART and part.file_size > RATIO * max(part.compress_size, 1)
        for part in parts
    )
    if squeezed or unpacked > limits.unpacked or len(parts) > MOST_PARTS:
        raise ParseError("too_large", "Unpacked it is far larger than a document may be.")


def _blocks(content: Iterator[Paragraph | Table]) -> Iterator[str]:
    for block in content:
        if isinstance(block, Table):
            rows = [" | ".join(_cells(row.cells)) for row in block.rows]
            text = "\n".join(row for row in rows if row.strip(" |"))
        else:
            text = _heading(block) + block.text.strip() if block.text.strip() else ""
        if text:
            yield text


def _heading(paragraph: Paragraph) -> str:
    style = paragraph.style
    name = (style.name or "") if style is not None else ""
    if name == "Title":
        return "# "
    level = name.removeprefix("Heading ")
    return "#" * int(level) + " " if level != name and level in set("123456") else ""


def _cells(cells: object) -> list[str]:
    """Texts of the cells of a row; one that spans several comes once."""
    texts: list[str] = []
    seen: set[int] = set()
    for cell in cells:  # type: ignore[attr-defined]  # a tuple of cells
        if id(cell._tc) not in seen:  # noqa: SLF001 (what tells merged cells from equal ones)
            seen.add(id(cell._tc))  # noqa: SLF001 (as above)
            texts.append(" ".join(cell.text.split()))
    return texts


DOCX: Final = Parser(f"python-docx/{version('python-docx')}", read_docx)
