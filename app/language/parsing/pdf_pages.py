"""PDF by pypdf: the text of each page, as far as there is one."""

from importlib.metadata import version
from io import BytesIO
from typing import Final

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from app.language.parsing.documents import Document, DocumentLimits, ParseError, Parser, checked

_FAULTS: Final = (
    PyPdfError, ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError,
    RecursionError, ArithmeticError, NotImplementedError, OSError, EOFError,
)  # fmt: skip
"""What pypdf raises for files that are broken in ways it does not foresee."""


def read_pdf(content: bytes, limits: DocumentLimits) -> Document:
    """The text of each page.

    Raises:
        ParseError: it is broken, protected, has no text, or too many pages or characters.

    """
    try:
        pages = _pages(content, limits)
    except _FAULTS:
        raise ParseError("malformed", "It is broken, so that its pages cannot be read.") from None
    texts, starts, length = [], [], 0
    for page in pages:
        starts.append(length)
        texts.append(page)
        length += len(page) + 2
    document = Document("\n\n".join(texts), starts)
    if not document.text.strip():
        raise ParseError(
            "no_text", "Its pages hold no text, only images: run it through OCR first."
        )
    return checked(document, limits)


def _pages(content: bytes, limits: DocumentLimits) -> list[str]:
    """The text of each page.

    Raises:
        ParseError: the file is protected, or has no pages or too many.

    """
    reader = PdfReader(BytesIO(content), strict=False)
    # Many are encrypted with an empty password, against printing alone.
    if reader.is_encrypted and not reader.decrypt(""):
        raise ParseError("encrypted", "It is protected by a password.")
    count = len(reader.pages)
    if count > limits.pages:
        raise ParseError("too_many_pages", f"It has more than {limits.pages} pages.")
    if not count:
        raise ParseError("malformed", "It has no pages.")
    pages, length = [], 0
    for page in reader.pages:
        text = page.extract_text().replace("\x00", "").strip()
        # A broken font gives halves of surrogate pairs, which nothing can store.
        pages.append(text.encode("utf-8", "replace").decode())
        length += len(text)
        if length > limits.characters:
            break
    return pages


PDF: Final = Parser(f"pypdf/{version('pypdf')}", read_pdf)
