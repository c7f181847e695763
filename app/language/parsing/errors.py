"""Why a document cannot be read; every code is shown with the file and never changes."""

from typing import Final

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
