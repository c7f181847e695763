"""A service whose models are scripted, on a runtime that the test holds too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from fastapi import FastAPI

from app.runtime import Runtime
from app.settings import Settings
from tests.support.application import started
from tests.support.openai_server import OpenAIServer
from tests.support.service import settings_of


def asking(server: OpenAIServer, **settings: Any) -> Settings:
    """Settings of a deployment whose endpoint is `server`, which is asked once and no oftener."""
    chosen = {"openai_api_key": "key", "model_retries": 0} | settings
    return settings_of(openai_base_url=server.base_url, **chosen)


@asynccontextmanager
async def app_of(runtime: Runtime) -> AsyncIterator[FastAPI]:
    """The whole service around a runtime that is open already, reached with `client_of`."""
    async with started(nullcontext(runtime)) as application:
        yield application
