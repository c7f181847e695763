"""Bytes of a text file as text, in whatever encoding they are; half a text is no text. Pure."""

import re
from typing import Final

from app.language.parsing.errors import ParseError
from app.language.parsing.legacy import BROKEN, guessed

SAMPLE_BYTES: Final = 128 * 1024
"""How much of a file tells its encoding."""

_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_NO_ENCODINGS = frozenset(
    {"unicode_escape", "raw_unicode_escape", "punycode", "idna", "undefined", "utf_7"}
)
"""Names that Python decodes, to something else than what the bytes say."""
_DECLARED = re.compile(rb"""charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE)

_UNREADABLE = "It is not text in any encoding that we know, or parts of it are damaged."
_CONTROL: Final = frozenset(range(32)) - {9, 10, 12, 13, 27}


def decoded(content: bytes, *, declares: bool = False) -> str:
    """The whole text, with the line ends of Unix.

    Args:
        content: the file.
        declares: whether its beginning may name the encoding, as HTML does.

    Raises:
        ParseError: `encoding`; a text with damaged places is refused as a whole.

    """
    try:
        text = content.decode(_encoding(content, declares=declares))
    except (UnicodeError, LookupError):
        raise ParseError("encoding", _UNREADABLE) from None
    if "\x00" in text:
        raise ParseError("encoding", _UNREADABLE)
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def looks_like_text(head: bytes) -> bool:
    """Whether the beginning of a file can be text of some encoding."""
    if any(head.startswith(mark) for mark, _ in _MARKS) or _wide(head) is not None:
        return True
    controls = sum(byte in _CONTROL for byte in head)
    return controls * 100 <= len(head)


def _encoding(content: bytes, *, declares: bool) -> str:
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    wide = marked or _wide(content[:SAMPLE_BYTES])
    if wide is not None:
        return wide
    damage = _damage(content)
    if damage is None:
        return "utf-8"
    told = _DECLARED.search(content[:4096]) if declares else None
    if told is not None:
        name = told[1].decode("ascii")
        if name.lower().replace("-", "_") in _NO_ENCODINGS:
            raise ParseError("encoding", _UNREADABLE)
        return name
    if damage:
        raise ParseError("encoding", _UNREADABLE)
    return _guessed(content)


def _guessed(content: bytes) -> str:
    """An encoding of the days before Unicode. Raises ParseError."""
    # Without a cut in the middle of a character: both kinds of line end are single bytes there.
    sample = content[:SAMPLE_BYTES]
    if len(content) > SAMPLE_BYTES:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    encoding = guessed(sample)
    if encoding is None or BROKEN.search(content.decode(encoding)):
        raise ParseError("encoding", _UNREADABLE)
    return encoding


def _damage(content: bytes) -> bool | None:
    """None for UTF-8; else whether it is UTF-8 with damaged places rather than another encoding."""
    try:
        content.decode()
    except UnicodeDecodeError:
        pass
    else:
        return None
    kept = content.decode(errors="ignore")
    bad = len(content) - len(kept.encode())
    return sum(sign > "\x7f" for sign in kept) > 3 * bad


def _wide(head: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of Western text is zero."""
    pairs = len(head) // 2
    if pairs < 2:
        return None
    even, odd = head[0 : pairs * 2 : 2].count(0), head[1 : pairs * 2 : 2].count(0)
    if odd * 10 >= pairs * 4 and even * 10 < pairs:
        return "utf-16-le"
    if even * 10 >= pairs * 4 and odd * 10 < pairs:
        return "utf-16-be"
    return None
