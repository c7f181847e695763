"""JSON values of a store. Pure.

PostgreSQL must be able to store one as it is. A filter is a JSON object, which becomes conditions
on single fields; `search_sql.py` translates these. Texts stand at paths such as `notes[*].title`,
as LangGraph's stores read them: `a.b` is a field of a field, `[0]`, `[-1]` and `[*]` are elements
of a list, `*` is every field or element, `{a,b.c}` several fields, and `$` the whole value.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, cast, get_args

from pydantic import BeforeValidator

DIGITS: Final = 309
"""Most digits of an integer: the largest float has so many, and comes back from JSONB as one."""

_LARGEST: Final = 10**DIGITS - 1


def check_json(value: Any, *, deepest: int) -> None:
    """Raises ValueError: it is nested deeper than `deepest` levels, or cannot be stored."""
    if deepest < 0:
        raise ValueError("is nested too deeply")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, int) and abs(value) > _LARGEST:
        raise ValueError(f"integers must not have more than {DIGITS} digits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("numbers must be finite")
    elif isinstance(value, dict):
        for name, item in value.items():
            _check_text(name)
            check_json(item, deepest=deepest - 1)
    elif isinstance(value, list):
        for item in value:
            check_json(item, deepest=deepest - 1)


def _check_text(text: str) -> None:
    """Raises ValueError."""
    if "\x00" in text:
        raise ValueError("must not contain NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode text, without half a surrogate pair") from None


Operator = Literal["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "object"]

OPERATORS: Final = frozenset(get_args(Operator)) - {"object"}
CONDITIONS: Final = 50
DEPTH: Final = 10


class Condition(NamedTuple):
    """A field, given by its path from the value down, compared with a JSON value.

    `object` only says that the field is an object.
    """

    field: tuple[str, ...]
    operator: Operator
    value: Any = None


def conditions(wanted: Mapping[str, Any]) -> list[Condition]:
    """All of them must hold.

    Raises:
        ValueError: an operator is unknown, or the filter is too large.

    """
    found: list[Condition] = []
    for condition in _conditions(wanted, ()):
        found.append(condition)
        if len(found) > CONDITIONS:
            raise ValueError(f"must not have more than {CONDITIONS} conditions")
    return found


def _conditions(wanted: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Condition]:
    """Raises ValueError."""
    for name, value in wanted.items():
        field = (*above, name)
        if len(field) > DEPTH:
            raise ValueError(f"must not be nested deeper than {DEPTH} levels")
        if not isinstance(value, dict):
            yield Condition(field, "$eq", value)
        elif any(key.startswith("$") for key in value):
            for operator, operand in value.items():
                if operator not in OPERATORS:
                    raise ValueError("has an unknown operator: " + ", ".join(sorted(OPERATORS)))
                yield Condition(field, cast("Operator", operator), operand)
        else:
            yield Condition(field, "object")
            yield from _conditions(value, field)


def _checked(wanted: Any) -> Any:
    """Raises ValueError."""
    if isinstance(wanted, dict):
        conditions(wanted)
        check_json(wanted, deepest=2 * DEPTH)
    return wanted


Filter = Annotated[dict[str, Any], BeforeValidator(_checked)]


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
