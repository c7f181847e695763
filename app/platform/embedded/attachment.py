"""How a command gets at the embedded database: beside a running service, or without one."""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import asyncpg
import structlog

from app.errors import ConfigurationError
from app.platform.database.logins import DatabaseUrls
from app.platform.embedded.cluster import SocketFolder, urls_of
from app.platform.embedded.data_folder import (
    DataFolder,
    DataFolderInUseError,
    is_data_folder,
    open_data_folder,
    open_lock,
    read_secrets,
    read_state,
)
from app.platform.embedded.server import EmbeddedPostgres

log = structlog.get_logger(__name__)

_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.2


@asynccontextmanager
async def open_embedded(data_dir: Path, *, share: bool) -> AsyncIterator[DatabaseUrls]:
    """The URLs of the embedded database, for the time of the block.

    Args:
        data_dir: the data folder.
        share: true uses the server that runs on the folder, and runs one for the time of
            the block when there is none; false always runs one, and holds the folder.

    Raises:
        DataFolderInUseError: another process holds the folder; with `share`, one that is
            not ready within a minute.

    """
    if not share:
        async with EmbeddedPostgres(data_dir) as postgres:
            yield postgres.urls
        return
    folder = open_data_folder(data_dir)
    postgres = EmbeddedPostgres(data_dir)
    with AttachedClients(folder) as clients:
        urls = await _started_or_joined(postgres, data_dir, clients)
        try:
            yield urls
            if postgres.pid is not None:
                await clients.wait_until_last()
        finally:
            await postgres.stop()


async def attach(data_dir: Path) -> DatabaseUrls | None:
    """The URLs of the database that a living service runs on the folder, or None.

    Raises:
        ConfigurationError: the folder belongs to another user, its passwords are missing, or the
            service is of a release that had one login.

    """
    if not is_data_folder(data_dir):
        return None
    folder = open_data_folder(data_dir)
    state = read_state(folder)
    if state is None or not _is_alive(state.pid):
        return None
    passwords = read_secrets(folder)
    if not passwords.serving_password:
        raise ConfigurationError(
            f"The service on {folder.root} is of an earlier release: stop it and start this one."
        )
    urls = urls_of(SocketFolder(Path(state.socket_folder), temporary=False), passwords)
    try:
        connection = await asyncpg.connect(urls.migration, timeout=_TIMEOUT_SECONDS)
    except (OSError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError):
        return None
    await connection.close()
    return urls


def _is_alive(pid: int) -> bool:
    """Whether the service runs; its server may run a little longer."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def _started_or_joined(
    postgres: EmbeddedPostgres, data_dir: Path, clients: "AttachedClients"
) -> DatabaseUrls:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            await postgres.start()
        except DataFolderInUseError:
            if clients.enter():
                if urls := await attach(data_dir):
                    return urls
                clients.leave()
            if time.monotonic() > deadline:
                raise
        else:
            return postgres.urls
        await asyncio.sleep(_POLL_SECONDS)


class AttachedClients:
    """Commands that use a server which another command runs; it leaves after the last.

    A lock shared by the clients, which the host takes alone before it goes. The kernel
    drops the lock of a client that dies.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._file = -1

    def __enter__(self) -> Self:
        self._file = open_lock(self._folder.clients)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def enter(self) -> bool:
        """Become a client; false when the host is about to leave."""
        return self._try(fcntl.LOCK_SH)

    def leave(self) -> None:
        """Stop being a client; safe to repeat."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    async def wait_until_last(self) -> None:
        """As the host: wait until no client is attached, and admit none until this list closes."""
        if self._try(fcntl.LOCK_EX):
            return
        log.info("postgres_stop_deferred", data_dir=str(self._folder.root))
        while not self._try(fcntl.LOCK_EX):  # noqa: ASYNC110  # Locks of files have no event.
            await asyncio.sleep(_POLL_SECONDS)

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
