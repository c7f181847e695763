"""A receiver of requests, for the tests of what a delivery may call."""

from collections.abc import AsyncIterator

import pytest

from tests.support.webhook_receiver import Receiver, webhook_receiver


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with webhook_receiver() as opened:
        yield opened
