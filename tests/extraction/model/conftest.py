"""A service with a worker, whose conversations are read by a scripted model."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.platform.jobs.worker import Worker
from app.runtime import Runtime, open_runtime
from tests.support.databases import migrated_database, served
from tests.support.model_service import app_of, asking
from tests.support.openai_server import Endpoint, OpenAIServer, openai_server
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.working import working


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture
def chat(running_server: OpenAIServer) -> Endpoint:
    """The scripted chat endpoint of the deployment."""
    running_server.reset()
    return running_server.chat


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres, request: pytest.FixtureRequest) -> str:
    """A database of the file alone: other tests' jobs would use up the script."""
    return await migrated_database(postgres, request.module.__name__.rpartition(".")[2])


@pytest.fixture(scope="module")
def model_settings() -> dict[str, Any]:
    """Settings that a file has besides."""
    return {}


@pytest.fixture(scope="module")
async def model_runtime(
    dsn: str, running_server: OpenAIServer, model_settings: dict[str, Any]
) -> AsyncIterator[Runtime]:
    settings = asking(running_server, extraction_model="openai/reader", **model_settings)
    async with open_runtime(settings, served(dsn)) as runtime:
        yield runtime


@pytest.fixture(scope="module")
async def model_app(model_runtime: Runtime) -> AsyncIterator[FastAPI]:
    async with app_of(model_runtime) as application:
        yield application


@pytest.fixture
async def client(
    model_app: FastAPI, model_runtime: Runtime, dsn: str
) -> AsyncIterator[AsyncClient]:
    """A client with the key of a tenant of its own, which it knows, as its database."""
    owner = await make_tenant(model_runtime)
    async with client_of(model_app, owner.key) as opened:
        opened.tenant_id = owner.tenant_id
        opened.dsn = dsn
        yield opened


@pytest.fixture
async def worker(model_runtime: Runtime, dsn: str) -> AsyncIterator[Worker]:
    async with working(model_runtime, dsn, profiles=False) as running:
        yield running
