"""Processes that are killed while they deliver: everything arrives, at worst twice."""

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
from webhook_desk import Desk

from app.governance.webhooks.delivery import LOST_AFTER
from tests.support.databases import served
from tests.support.patience import PATIENCE
from tests.support.service import SECRET_KEY
from tests.support.webhook_receiver import Receiver, held, slow

SCRIPT = Path(__file__).with_name("deliver_alone.py")
ROOT = SCRIPT.parents[2]

_BLOCKED = """
SELECT FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE webhook_deliveries%'
"""


@asynccontextmanager
async def delivering(desk: Desk) -> AsyncIterator[Process]:
    """A process that delivers; killed at the end when it still lives."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        served(desk.dsn),
        desk.tenant_id,
        desk.webhook_id,
        SECRET_KEY,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def kill(process: Process) -> None:
    process.kill()
    assert await process.wait() == -9


@asynccontextmanager
async def locked(desk: Desk) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A connection; what it yields locks the webhook's deliveries until the end."""
    connection = await asyncpg.connect(desk.dsn)

    async def lock() -> None:
        await connection.execute("SET ROLE kemem_owner; BEGIN")
        await connection.execute(
            "SELECT FROM webhook_deliveries WHERE tenant_id = $1 AND webhook_id = $2 FOR UPDATE",
            desk.tenant_id,
            desk.webhook_id,
        )

    try:
        yield lock
    finally:
        await connection.close()


async def waiting_for_a_lock(dsn: str) -> None:
    """Returns when the service is about to write what somebody else has locked."""
    connection = await asyncpg.connect(dsn)
    try:
        async with asyncio.timeout(PATIENCE):
            while not await connection.fetch(_BLOCKED):  # noqa: ASYNC110 (only the table says so)
                await asyncio.sleep(0.02)
    finally:
        await connection.close()


async def test_an_event_whose_worker_is_killed_while_sending_arrives_again(
    desk: Desk, receiver: Receiver
) -> None:
    await desk.happen()
    receiver.script(held(asyncio.Event()))
    async with delivering(desk) as process:
        await receiver.received(1)
        await kill(process)

    assert await desk.deliver() == {}
    desk.clock.pass_by(seconds=LOST_AFTER.total_seconds() + 1)
    assert await desk.deliver() == {"delivered": 1}

    first, second = receiver.requests
    assert first.event_id == second.event_id
    assert first.body == second.body
    second.verified(desk.secret)


async def test_an_event_that_arrived_unrecorded_arrives_again_under_its_id(
    desk: Desk, receiver: Receiver
) -> None:
    """Killed between the receiver's 200 and the row that says so, which the test locks."""
    await desk.happen()
    released = asyncio.Event()
    receiver.script(held(released))
    async with delivering(desk) as process, locked(desk) as lock:
        await receiver.received(1)
        await lock()
        released.set()
        await waiting_for_a_lock(desk.dsn)
        await kill(process)

    desk.clock.pass_by(seconds=LOST_AFTER.total_seconds() + 1)
    assert await desk.deliver() == {"delivered": 1}
    assert len(receiver.requests) == 2
    assert len(set(receiver.event_ids)) == 1
    assert (await desk.delivery())["status"] == "delivered"


async def test_killed_again_and_again_nothing_is_missed(desk: Desk, receiver: Receiver) -> None:
    await desk.happen(40)
    receiver.otherwise = slow(0.01)
    for turn in range(1, 4):
        async with delivering(desk) as process:
            await receiver.received(turn * 8)
            await kill(process)

    desk.clock.pass_by(seconds=LOST_AFTER.total_seconds() + 1)
    await desk.deliver()

    rows = await desk.deliveries()
    assert {row["status"] for row in rows} == {"delivered"}
    assert set(receiver.event_ids) == {row["event_id"] for row in rows}
    # Each kill costs one event a second arrival, at most.
    assert len(receiver.requests) <= 40 + 3
