"""Texts of a JSON value at paths such as `notes[*].title`, as LangGraph's stores read them. Pure.

`a.b` is a field of a field, `[0]`, `[-1]` and `[*]` are elements of a list, `*` is every field or
element, `{a,b.c}` several fields, and `$` the whole value.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

WHOLE = "$"

_STEP = re.compile(r"\[[^\]]*\]?|\{[^}]*\}?|[^.\[{]+")


class Looks:
    """How many more values may be looked at, whatever the paths."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self) -> None:
        """Raises LooksExceededError."""
        self._left -= 1
        if self._left < 0:
            raise LooksExceededError


class LooksExceededError(Exception):
    """Paths lead to more values than may be looked at."""


def texts_at(value: Any, path: Sequence[str], looks: Looks) -> Iterator[str]:
    """The texts at the steps of a path, in order; objects and lists as JSON, nothing for null.

    Raises LooksExceededError.
    """
    if path:
        yield from _texts(value, path, looks)
    else:
        yield _json(value)


def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a path: the same for all ways to write it, and none for the whole value."""
    return () if path == WHOLE else _steps_of(path)


def _steps_of(path: str) -> tuple[str, ...]:
    return tuple(_STEP.findall(path))


def _texts(value: Any, rest: Sequence[str], looks: Looks) -> Iterator[str]:
    looks.take()
    if not rest:
        yield from _text(value)
        return
    step, *further = rest
    if step.startswith("{"):
        # Several fields end a path, as they do in LangGraph.
        further = []
    for found in _reached(value, step, looks):
        yield from _texts(found, further, looks)


def _reached(value: Any, step: str, looks: Looks) -> Iterator[Any]:
    """What one step of a path leads to."""
    if step.startswith("[") and step.endswith("]"):
        if isinstance(value, list):
            yield from _elements(value, step[1:-1])
    elif step.startswith("{") and step.endswith("}"):
        for field in step[1:-1].split(","):
            looks.take()
            yield from _field(value, _steps_of(field.strip()))
    elif step == "*":
        yield from value.values() if isinstance(value, dict) else _listed(value)
    elif isinstance(value, dict) and step in value:
        yield value[step]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _elements(value: list[Any], index: str) -> Iterator[Any]:
    if index == "*":
        yield from value
        return
    try:
        number = int(index)
    except ValueError:
        return
    if -len(value) <= number < len(value):
        yield value[number]


def _field(value: Any, names: Sequence[str]) -> Iterator[Any]:
    for name in names:
        if not (isinstance(value, dict) and name in value):
            return
        value = value[name]
    if names:
        yield value


def _text(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        yield _json(value)
    elif value is not None:
        yield str(value)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
