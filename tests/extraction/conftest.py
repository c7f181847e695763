"""A worker beside the service, as `kemem serve` has one."""

from collections.abc import AsyncIterator

import pytest

from app.platform.jobs.worker import Worker
from app.runtime import Runtime
from tests.support.working import working


@pytest.fixture
async def worker(runtime: Runtime, dsn: str) -> AsyncIterator[Worker]:
    async with working(runtime, dsn) as running:
        yield running
