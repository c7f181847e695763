"""JSON objects that are larger than metadata: their bounds, their size, and merge patches."""

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BeforeValidator, JsonValue

from app.platform.values.fields import LARGEST_INTEGER

DOCUMENT_DEPTH = 32
"""Most levels of nested objects and lists."""

# PostgreSQL cannot keep the character that JSON writes so. A backslash before it, itself not
# escaped, would make it six ordinary characters.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def large_object(limit: int) -> BeforeValidator:
    """Validates an object of at most `limit` bytes of JSON and 32 levels.

    Number and length of its keys are only limited by its size.
    """

    def check(value: Any) -> Any:
        if isinstance(value, dict):
            _refuse_unstorable(value)
            if json_size(value) > limit:
                raise ValueError(f"must not be larger than {limit // 1024} KiB of JSON")
        return value

    # Before Pydantic's validation: a value nested a thousand levels deep is refused here.
    return BeforeValidator(check)


def json_size(value: Mapping[str, JsonValue]) -> int:
    """Bytes of `value` as JSON in UTF-8 without any spaces."""
    return len(_written(value).encode())


def same_json(first: JsonValue, second: JsonValue) -> bool:
    """Whether two values are the same in JSON. In Python `True == 1 == 1.0`."""
    return _written(first) == _written(second)


def merged(target: JsonValue, patch: JsonValue) -> JsonValue:
    """`target` after a merge patch (RFC 7386): null removes, an object is merged, any other
    value replaces the old one.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def _written(value: Any) -> str:
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
    )


def _refuse_unstorable(value: dict[str, Any]) -> None:
    _refuse_depth_and_numbers(value)
    try:
        text = _written(value)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode text, without half a surrogate pair") from None
    except ValueError:
        raise ValueError("numbers must be finite") from None
    if _NUL.search(text):
        raise ValueError("must not contain NUL characters")


def _refuse_depth_and_numbers(value: dict[str, Any]) -> None:
    # Level by level: half a million numbers fit into a mebibyte.
    level: list[Any] = [value]
    for _ in range(DOCUMENT_DEPTH):
        below: list[Any] = []
        for container in level:
            for item in container.values() if type(container) is dict else container:
                kind = type(item)
                if kind is dict or kind is list:
                    below.append(item)
                elif kind is int and not -LARGEST_INTEGER <= item <= LARGEST_INTEGER:
                    raise ValueError("numbers must fit into 64 bits")
        if not below:
            return
        level = below
    raise ValueError(f"must not be nested deeper than {DOCUMENT_DEPTH} levels")
