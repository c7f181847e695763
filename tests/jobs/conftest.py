"""A database with the queue in it, and tenants; none of the service around them."""

from collections.abc import AsyncIterator

import pytest

from app.platform.database.engine import Database, open_database
from app.platform.embedded.server import EmbeddedPostgres
from tests.jobs.jobs_support import Queue, new_tenant
from tests.support.databases import migrated_database, served
from tests.support.patience import PATIENCE


@pytest.fixture(scope="module")
async def jobs_dsn(postgres: EmbeddedPostgres, request) -> str:
    """A migrated database of one file: whoever claims sees the jobs of all tenants."""
    return await migrated_database(postgres, request.module.__name__.replace(".", "_"))


@pytest.fixture(scope="module")
async def database(jobs_dsn: str) -> AsyncIterator[Database]:
    async with open_database(
        served(jobs_dsn), pool_size=6, statement_timeout_seconds=PATIENCE
    ) as opened:
        yield opened


@pytest.fixture
async def queue(database: Database, jobs_dsn: str) -> AsyncIterator[Queue]:
    """The queue as one new tenant sees it; no other tenant has a job."""
    async with Queue.open(database, jobs_dsn) as opened:
        yield opened


@pytest.fixture
async def other_queue(queue: Queue) -> Queue:
    """The same queue as another tenant sees it."""
    return queue.of(await new_tenant(queue.owner))
