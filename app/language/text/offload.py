"""Work that would hold the event loop up runs in a thread, as does what reading texts needs first;
little of it runs at once.

A sentence is read at once and a book in a thread. Ranking many rows has threads of its own, two at
a time: more would share two cores, and each holds what it ranks in memory.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

from app.language.text.lazy_pattern import compile_patterns
from app.language.text.normal_forms import simplify
from app.language.text.secret_patterns import formats

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


AT_ONCE: Final = 2
"""Each holds what it ranks in memory, some 10 MB per 10,000 rows."""

INLINE_PRODUCTS: Final = 6_000
"""Rows times the vectors they are compared with: ranking so many takes one to two milliseconds,
the most that others should wait."""

# Threads of their own: reading texts and embedding them never wait for a ranking.
_TURNS: Final = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ranking")


async def in_turn(products: int, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The result of a pure function that ranks: at once when there is little to do, else in a
    thread, when its turn has come.

    Args:
        products: rows times the vectors they are compared with.

    """
    if products <= INLINE_PRODUCTS:
        return function(*args, **kwargs)
    call = partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_TURNS, call)


def load_tables() -> None:
    """Compile all patterns, and load those of secrets and the table of simplified characters; to
    be run in a thread beside the start of a server, or before its processes are forked.
    """
    compile_patterns()
    formats()
    simplify("國")
