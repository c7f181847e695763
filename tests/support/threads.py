"""What runs in threads while the event loop goes on answering."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


class WatchedThreads(ThreadPoolExecutor):
    """Threads that know the names of the functions they were given."""

    def __init__(self) -> None:
        super().__init__(max_workers=4)
        self.ran: list[str] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        # `asyncio.to_thread` wraps its function in a partial, to take the context along.
        inner = getattr(fn, "args", None) or (fn,)
        self.ran.append(getattr(inner[0], "__name__", ""))
        return super().submit(fn, *args, **kwargs)


@contextmanager
def watched_threads() -> Iterator[list[str]]:
    """Names of the functions that this loop has run in threads, while the block runs."""
    loop = asyncio.get_running_loop()
    watched = WatchedThreads()
    loop.set_default_executor(watched)
    try:
        yield watched.ran
    finally:
        loop.set_default_executor(ThreadPoolExecutor())
        watched.shutdown()
