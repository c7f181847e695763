"""What is left of a document when its format is gone: text, and where its pages begin."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from app.language.parsing.errors import ParseError


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one document.

    Args:
        characters: of its text.
        pages: of a PDF.
        unpacked: bytes that a compressed document may take when unpacked.

    """

    characters: int = 5_000_000
    pages: int = 5_000
    unpacked: int = 256 * 1024 * 1024


LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a document.

    Args:
        page_starts: where each page begins in the text, in characters; empty where a format
            knows no pages.

    """

    text: str
    page_starts: Sequence[int] = ()


class Parser(Protocol):
    """A module of this workshop that reads one format."""

    NAME: str
    """With its version, as files show what read them."""

    def read(self, content: bytes, limits: Limits) -> Document:
        """Raises ParseError."""
        ...


def checked(document: Document, limits: Limits) -> Document:
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
