"""What is left of a document when its format is gone: text, and where its pages begin."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.language.parsing.errors import ParseError


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Bounds of one document.

    Args:
        characters: of its text.
        pages: of a PDF.
        unpacked: bytes that a compressed document may take when unpacked.

    """

    characters: int = 5_000_000
    pages: int = 5_000
    unpacked: int = 256 * 1024 * 1024


LIMITS: Final = DocumentLimits()


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a document.

    Args:
        page_starts: where each page begins in the text, in characters; empty where a format
            knows no pages.

    """

    text: str
    page_starts: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Parser:
    """Reads one format.

    Args:
        name: with its version, as files show what read them.
        read: the document in the bytes; raises ParseError where there is none.

    """

    name: str
    read: Callable[[bytes, DocumentLimits], Document]


def checked(document: Document, limits: DocumentLimits) -> Document:
    """The document itself, if it has text and not too much of it.

    Raises:
        ParseError: `no_text` or `too_long`.

    """
    if not document.text.strip():
        raise ParseError("no_text", "There is no text in it.")
    if len(document.text) > limits.characters:
        raise ParseError(
            "too_long",
            f"It has more than {limits.characters} characters of text: split it into files.",
        )
    return document
