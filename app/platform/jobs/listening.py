"""Hearing of work that is due at once. Only a help: what is not heard is found by looking."""

import asyncio
from collections.abc import Callable

import asyncpg
import structlog

from app.platform.database.roles import DISPATCH
from app.platform.jobs.orders import CHANNEL

log = structlog.get_logger()

CONNECT_SECONDS = 10
PAUSE_SECONDS = 1.0


class Listener:
    """One connection that waits for NOTIFY, made again whenever it is lost."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` for every notification, and once whenever some may have been missed."""
        while True:
            try:
                await self._listen(wake)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                log.debug("job_listener_failed", error=type(error).__name__)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _listen(self, wake: Callable[[], None]) -> None:
        connection = await asyncpg.connect(
            self._dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=CONNECT_SECONDS,
            server_settings={"application_name": "kemem-listener"},
        )
        gone = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _connection: gone.set())
            await connection.execute(f"SET ROLE {DISPATCH}")
            await connection.add_listener(CHANNEL, lambda *_heard: wake())
            wake()
            await gone.wait()
        finally:
            connection.terminate()
