"""Ranking many rows, a few searches at a time: the others wait instead of sharing two cores."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

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
