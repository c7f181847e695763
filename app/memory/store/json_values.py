"""Whether PostgreSQL can store a JSON value as it is. Pure."""

import math
from typing import Any, Final

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
