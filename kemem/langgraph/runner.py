"""Running the client's operations from sync and async methods alike."""

import asyncio
from typing import TypeVar

from kemem._async.sender import AsyncSender
from kemem._sync.sender import Sender
from kemem.calls import Operation

Result = TypeVar("Result")


class Runner:
    """Runs operations with a client of either kind.

    With `Memory`, async methods run in threads. With `AsyncMemory`, they run in its event loop,
    and sync methods may be called from other threads while the loop runs.
    """

    def __init__(self, owner: str, client: Sender | AsyncSender) -> None:
        """Run with `client`, which stays open; errors name the class `owner`."""
        self._owner = owner
        self._client = client
        # Set by the first async method where none runs yet.
        self._loop = _current_loop()

    def run(self, operation: Operation[Result]) -> Result:
        """Its result.

        Raises:
            RuntimeError: the client is an `AsyncMemory` whose event loop does not run, or would
                be waited for by itself.
            KememError: the service did not answer, or refused.

        """
        try:
            return self._run(operation)
        finally:
            # An error that is kept would keep it open.
            operation.close()

    async def run_async(self, operation: Operation[Result]) -> Result:
        """Like `run`, but for the RuntimeError."""
        if isinstance(self._client, Sender):
            return await asyncio.to_thread(self.run, operation)
        self._loop = asyncio.get_running_loop()
        try:
            return await self._client._run(operation)  # noqa: SLF001 (of this package)
        finally:
            operation.close()

    def _run(self, operation: Operation[Result]) -> Result:
        if isinstance(self._client, Sender):
            return self._client._run(operation)  # noqa: SLF001 (of this package)
        if self._loop is None or not self._loop.is_running():
            raise RuntimeError(
                f"This {self._owner} has an AsyncMemory, whose event loop does not run: await its "
                "async methods, or give it a Memory."
            )
        if _current_loop() is self._loop:
            raise RuntimeError(
                f"A sync method of {self._owner} would wait for the event loop in which it is "
                "called: await the async one, or give it a Memory."
            )
        coroutine = self._client._run(operation)  # noqa: SLF001 (of this package)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def _current_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
