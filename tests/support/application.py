"""The application of every service that tests start in their process: one, copied for each."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from copy import copy
from functools import cache
from types import TracebackType

from asgi_lifespan import LifespanManager
from fastapi import FastAPI
from starlette.datastructures import State

from app.main import create_app
from app.runtime import Runtime
from tests.support.patience import PATIENCE

_opening: ContextVar[AbstractAsyncContextManager[Runtime]] = ContextVar("opening")


class _Chosen(AbstractAsyncContextManager[Runtime]):
    """The runtime that is being opened where this is entered."""

    async def __aenter__(self) -> Runtime:
        return await _opening.get().__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await _opening.get().__aexit__(kind, error, traceback)


@cache
def shared_application() -> FastAPI:
    """The application whose routes and document all have."""
    return create_app(_Chosen())


@asynccontextmanager
async def started(opening: AbstractAsyncContextManager[Runtime]) -> AsyncIterator[FastAPI]:
    """The whole service around a runtime, reached with `client_of`.

    Making an application takes 0.3 s of CPU, and the first request to each of its routes as much
    again in all. Neither knows anything of a runtime, which each copy gets at its start.
    """
    app = copy(shared_application())
    app.state, app.middleware_stack = State(), None
    # Its start runs in a task of its own, which keeps what is chosen now.
    chosen = _opening.set(opening)
    async with LifespanManager(app, startup_timeout=PATIENCE, shutdown_timeout=PATIENCE) as manager:
        _opening.reset(chosen)
        app.state.reached = manager.app
        yield app
        # It holds the models of the service, and `app` may outlive this block.
        del app.state.reached
