"""Calling either client, the sync one and the async one, in the same words."""

import inspect
from collections.abc import Callable
from typing import Any

KEY = "kem_0123456789abcdef_secret"


async def ask(method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What a method of either client gives."""
    answer = method(*arguments, **named)
    return await answer if inspect.isawaitable(answer) else answer
