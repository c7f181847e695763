"""Stored text and times as a prompt shows them: on their line, opening no tag, and in words."""

from datetime import timedelta
from typing import Final

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escape_line(text: str) -> str:
    """`text` on one line, with `<`, `>` and `&` written out.

    A closing tag in what a user once said must not end the block it is quoted in.
    """
    return escaped(" ".join(text.split()))


def escape_lines(text: str) -> list[str]:
    """The lines of `text`, with `<`, `>` and `&` written out and spaces as they are.

    Whatever else ends a line somewhere ends one here, so that none is longer than it looks.
    """
    return escaped(text).splitlines()


def escaped(text: str) -> str:
    """`text` with `<`, `>` and `&` written out."""
    # Most lines have none, and a line of Chinese is translated character by character.
    return text.translate(_ESCAPES) if "&" in text or "<" in text or ">" in text else text


def unescape(text: str) -> str:
    """What `escape_line` and `escape_lines` wrote out, as it was."""
    for written, meant in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(written, meant)
    return text


_UNITS: Final = (
    ("year", timedelta(days=365.25)),
    ("month", timedelta(days=30.4375)),
    ("week", timedelta(weeks=1)),
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
)


def time_ago(elapsed: timedelta) -> str:
    """`3 days ago`, in the largest unit that was full; `in 3 days` for what is to come.

    Within a minute it is `just now`.
    """
    length = abs(elapsed)
    for name, unit in _UNITS:
        count = length // unit
        if count:
            span = f"{count} {name}{'s' if count > 1 else ''}"
            return f"{span} ago" if elapsed > timedelta(0) else f"in {span}"
    return "just now"
