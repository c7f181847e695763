"""The arguments of a tool call that came as a text, read for an API that wants an object. Pure."""

import json
from typing import Any, Final

DEEPEST_ARGUMENTS: Final = 100
"""Most levels of nested objects and lists. An answer is not written much deeper."""


def read_arguments(text: str) -> Any:
    """The value that the text is in JSON, or the text itself where it is none.

    Not read are half a surrogate pair, numbers that are not finite, and what is nested too deep:
    a model may write them, and no answer in JSON can have them.
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return text
    return value if _is_flat(value) else text


def _is_flat(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST_ARGUMENTS + 1):
        level = [item for container in level for item in _inside(container)]
        if not level:
            return True
    return False


def _inside(value: Any) -> list[Any]:
    """What it contains."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
