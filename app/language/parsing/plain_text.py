"""Plain text and Markdown: as they stand, decoded."""

from typing import Final

from app.language.parsing.decoding import decoded
from app.language.parsing.documents import Document, Limits, checked

NAME: Final = "text/1"


def read(content: bytes, limits: Limits) -> Document:
    """Raises ParseError."""
    return checked(Document(decoded(content)), limits)
