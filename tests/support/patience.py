"""How long a test waits for what is bound to happen."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol

PATIENCE: Final = 300.0
"""Seconds. A condition is looked at every few hundredths of one, so a long limit costs nothing
where it comes true, and a machine ten times slower still meets it."""


class _Server(Protocol):
    @property
    def requests(self) -> Sequence[Any]: ...


async def until_asked(server: _Server) -> None:
    """Wait for the first request that a server in another thread gets."""
    async with asyncio.timeout(PATIENCE):
        while not server.requests:  # noqa: ASYNC110 (another thread brings it about)
            await asyncio.sleep(0.01)
