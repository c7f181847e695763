"""Reading a sentence is quick and reading a book is not: the book is read in a thread."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

INLINE_CHARACTERS = 2000
"""Scanning this much takes about a millisecond, the most the event loop should wait."""


async def read_text(
    characters: int, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """The result of a pure function over `characters` of text, without holding others up."""
    if characters <= INLINE_CHARACTERS:
        return function(*args, **kwargs)
    return await asyncio.to_thread(function, *args, **kwargs)
