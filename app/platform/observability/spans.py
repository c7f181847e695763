"""Traces, where MEMORY_TRACING is on: who asks for a span finds one here, or nothing at all.

Nothing of OpenTelemetry is imported here, and without the setting nowhere: then a request, a job
and a call of a model read one list that is empty, and a statement not even that.
"""

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

TRACEPARENT: Final[ContextVar[str | None]] = ContextVar("traceparent", default=None)
"""The W3C context of the request or job that is worked on; it goes on into the jobs it orders."""

CARRIED: Final = "traceparent"
"""Under which name a job's payload holds it."""

# As ASGI has them.
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Serve = Callable[[Scope, Receive, Send], Awaitable[int]]


class ModelSpan(Protocol):
    """A call of a model."""

    def used(self, input_tokens: int, output_tokens: int | None = None) -> None:
        """Note the tokens it took."""

    def failed(self, error: BaseException) -> None:
        """Note that it failed, by the class of the error."""


class Tracing(Protocol):
    """What makes spans."""

    async def request(self, serve: Serve, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request inside a span; `serve` returns the status."""

    async def job(
        self,
        kind: str,
        job_id: str,
        attempts: int,
        traceparent: str | None,
        work: Callable[[], Awaitable[Any]],
    ) -> Any:
        """Run a job inside a span that goes on the trace of whoever ordered it."""

    def model_call(self, operation: str, model: str) -> AbstractContextManager[ModelSpan]:
        """A span around a call of a model."""

    def watch_connection(self, connection: asyncpg.Connection) -> None:
        """Make a span of each statement that is sent on it inside of another span."""

    def watch_engine(self, engine: AsyncEngine) -> None:
        """The same for the statements that SQLAlchemy sends."""


_open: Final[list[Tracing]] = []


def tracing() -> Tracing | None:
    """What makes spans in this process; None where tracing is off."""
    return _open[-1] if _open else None


@contextmanager
def in_force(made: Tracing) -> Iterator[None]:
    """Make spans with `made` for the time of the block."""
    _open.append(made)
    try:
        yield
    finally:
        _open.remove(made)


class _Unwatched:
    def used(self, input_tokens: int, output_tokens: int | None = None) -> None:
        pass

    def failed(self, error: BaseException) -> None:
        pass


@contextmanager
def model_call(operation: str, model: str) -> Iterator[ModelSpan]:
    """A span around a call of a model, where tracing is on.

    Args:
        operation: as the conventions of OpenTelemetry name it: `chat`, `embeddings`.
        model: its name.

    """
    made = tracing()
    if made is None:
        yield _Unwatched()
        return
    with made.model_call(operation, model) as span:
        yield span


def carried() -> dict[str, str]:
    """What a job's payload holds besides: the trace in which it is ordered, if there is one."""
    traceparent = TRACEPARENT.get()
    return {} if traceparent is None else {CARRIED: traceparent}
