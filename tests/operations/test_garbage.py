"""What a process that serves keeps for good, its collector of garbage passes over."""

import gc

from app.runtime import warmed_up


async def test_what_is_open_when_a_server_begins_is_no_longer_looked_through():
    opened = [[]]
    assert any(one is opened for one in gc.get_objects())

    async with warmed_up():
        assert not any(one is opened for one in gc.get_objects())
