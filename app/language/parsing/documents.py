"""What is left of a document when its format is gone (text, and where its pages begin), or why
it cannot be read: every such code is shown with the file and never changes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final


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


CODES: Final = (
    "encoding", "encrypted", "malformed", "no_text", "too_long", "too_many_pages", "too_large",
    "timed_out", "parser_failed",
)  # fmt: skip


class ParseError(Exception):
    """The document as it is can never be read; trying again changes nothing.

    Args:
        code: one of `CODES`.
        detail: a sentence of ours, without the document's words.

    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail
