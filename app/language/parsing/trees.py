"""JSON and JSON Lines: each value with the path to it, a record per paragraph."""

import json
from collections.abc import Iterator
from typing import Any, Final

from app.language.parsing.decoding import decoded
from app.language.parsing.documents import Document, Limits, checked
from app.language.parsing.errors import ParseError

NAME: Final = "json/1"

DEEPEST: Final = 64

_MALFORMED = "It is no JSON that can be read."


def read(content: bytes, limits: Limits) -> Document:
    """Raises ParseError."""
    text = decoded(content)
    try:
        records = _records(text)
        blocks = ["\n".join(_lines(record, "", 0)) for record in records]
    except (ValueError, RecursionError):
        raise ParseError("malformed", _MALFORMED) from None
    return checked(Document("\n\n".join(block for block in blocks if block)), limits)


def _records(text: str) -> list[Any]:
    """What is read apart: the members of a list, or the lines of JSON Lines."""
    try:
        value = json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        return [json.loads(line) for line in lines]
    return value if isinstance(value, list) else [value]


def _lines(value: Any, path: str, depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        raise ParseError("malformed", f"It is nested deeper than {DEEPEST} levels.")
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _lines(inner, f"{path}.{name}" if path else name, depth + 1)
    elif isinstance(value, list):
        if all(not isinstance(inner, dict | list) for inner in value):
            shown = ", ".join(_shown(inner) for inner in value)
            if shown:
                yield f"{path}: {shown}" if path else shown
            return
        for number, inner in enumerate(value, 1):
            yield from _lines(inner, f"{path} {number}".strip(), depth + 1)
    elif value not in {None, ""}:
        yield f"{path}: {_shown(value)}" if path else _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    # Half a surrogate pair is no text.
    return str(value).replace("\x00", "").encode("utf-8", "replace").decode()
