"""The service with private targets allowed, a receiver, and a deliverer whose clock is ours."""

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from webhook_desk import Desk, make_webhook

from app.runtime import Runtime
from tests.support.service import client_of, service
from tests.support.tenants import Caller
from tests.support.webhook_receiver import Receiver, webhook_receiver


@pytest.fixture(scope="session")
async def hooked(dsn: str) -> AsyncIterator[FastAPI]:
    """The whole service of a deployment that lets webhooks call its own network."""
    async with service(dsn, webhook_private_targets=True) as app:
        yield app


@pytest.fixture
async def admin(hooked: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    """As `client`, where private targets are allowed."""
    async with client_of(hooked, acme.key) as opened:
        yield opened


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with webhook_receiver() as opened:
        yield opened


@pytest.fixture
async def desk(
    runtime: Runtime, dsn: str, acme: Caller, admin: AsyncClient, receiver: Receiver
) -> Desk:
    """A webhook that points at `receiver` and wants everything."""
    return Desk(runtime, dsn, acme, await make_webhook(admin, receiver.url))
