"""The application of every service that tests start in their process: they share their routes."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cache

from asgi_lifespan import LifespanManager
from fastapi import FastAPI

from app.main import create_app
from app.runtime import Runtime
from tests.support.patience import PATIENCE


@cache
def shared_application() -> FastAPI:
    """The application whose routes all have. It has no runtime and cannot be started."""
    return create_app(nullcontext())


@asynccontextmanager
async def started(opening: AbstractAsyncContextManager[Runtime]) -> AsyncIterator[FastAPI]:
    """The whole service around a runtime, reached with `client_of`.

    FastAPI makes what calls a route at the first request, in each application anew: 0.3 s of CPU
    for all routes. They know nothing of a runtime, so one set serves all; and so does the document,
    which takes a second to make.
    """
    app, shared = create_app(opening), shared_application()
    app.router.routes = shared.router.routes
    app.dependency_overrides = shared.dependency_overrides
    app.openapi = shared.openapi  # type: ignore[method-assign] # as FastAPI's own users do
    async with LifespanManager(app, startup_timeout=PATIENCE, shutdown_timeout=PATIENCE) as manager:
        app.state.reached = manager.app
        yield app
        # It holds the models of the service, and `app` may outlive this block.
        del app.state.reached
