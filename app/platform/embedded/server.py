"""The PostgreSQL that KeMem brings along: one data folder, one process that owns it.

The server of `kemem serve`; commands come through `attachment.py`. Nothing here listens on
a network, runs as root, or outlives the process that started it.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog
from typing_extensions import override

from app.errors import ConfigurationError
from app.platform.database.logins import DatabaseUrls
from app.platform.embedded.cluster import (
    DATABASE,
    SUPERUSER,
    SocketFolder,
    choose_socket_folder,
    discard_socket_folder,
    ensure_cluster,
    ensure_database,
    short_bases,
    urls_of,
)
from app.platform.embedded.data_folder import (
    ClusterPasswords,
    DataFolder,
    FolderLock,
    default_data_dir,
    open_data_folder,
    write_state,
)
from app.platform.embedded.postmaster import Installation, Postmaster
from app.platform.embedded.programs import (
    Account,
    Binaries,
    account_for,
    find_binaries,
    permits,
    readable_binaries,
)

log = structlog.get_logger(__name__)


class EmbeddedPostgres:
    """A supervised PostgreSQL on a data folder that this process alone holds."""

    def __init__(self, data_dir: Path, *, binaries: Path | None = None) -> None:
        """Describe the server; nothing happens before `start`.

        Args:
            data_dir: made when missing. Root's must be reachable for the account that
                PostgreSQL then runs as.
            binaries: a tree with `bin`, `lib` and `share` instead of the wheel's.

        """
        self._data_dir = data_dir
        self._binaries = Binaries(binaries) if binaries else None
        self._lock: FolderLock | None = None
        self._folder: DataFolder | None = None
        self._sockets: SocketFolder | None = None
        self._secrets: ClusterPasswords | None = None
        self._postmaster: Postmaster | None = None
        self._supervisor: asyncio.Task[None] | None = None

    @override
    def __repr__(self) -> str:
        return f"EmbeddedPostgres(data_dir={str(self._data_dir)!r}, pid={self.pid})"

    @property
    def pid(self) -> int | None:
        """The server's process, which changes when it had to be restarted."""
        return self._postmaster.pid if self._postmaster else None

    @property
    def socket_folder(self) -> Path:
        return self._running()[0].path

    @property
    def dsn(self) -> str:
        """URL of the database for the login that migrates, with its password: never log it."""
        return self.urls.migration

    @property
    def urls(self) -> DatabaseUrls:
        """URLs of the database for both logins."""
        return urls_of(*self._running())

    @property
    def superuser_dsn(self) -> str:
        """The same as the superuser, for tests and administration."""
        sockets, secrets = self._running()
        return sockets.dsn(user=SUPERUSER, password=secrets.superuser_password, database=DATABASE)

    def _running(self) -> tuple[SocketFolder, ClusterPasswords]:
        """The server.

        Raises:
            RuntimeError: it was not started.

        """
        if self._sockets is None or self._secrets is None:
            raise RuntimeError("the embedded PostgreSQL is not running")
        return self._sockets, self._secrets

    async def start(self) -> None:
        """Take the data folder, and return when the database answers.

        The first start makes the cluster, the role, the database and the extension.
        Call it on a thread that lives as long as the server should.

        Raises:
            DataFolderInUseError: another process holds the folder.
            ConfigurationError: PostgreSQL cannot run here; the message says what to do.

        """
        if self._lock is not None:
            raise RuntimeError("the embedded PostgreSQL is already started")
        folder = open_data_folder(self._data_dir)
        lock = FolderLock(folder)
        lock.acquire()
        self._lock, self._folder = lock, folder
        try:
            await self._bring_up(folder)
        except BaseException:
            await self.stop()
            raise

    async def _bring_up(self, folder: DataFolder) -> None:
        folder.state.unlink(missing_ok=True)
        account = account_for(folder.cluster)
        _check_reachable(folder, account)
        binaries = await asyncio.to_thread(
            readable_binaries,
            self._binaries or find_binaries(),
            account=account,
            data_dir=folder.root,
        )
        secrets = await ensure_cluster(folder, binaries, account)
        sockets = choose_socket_folder(
            folder.sockets, data_dir=folder.root, bases=short_bases(account)
        )
        self._secrets, self._sockets = secrets, sockets
        self._postmaster = Postmaster(
            Installation(folder.cluster, binaries, account, sockets),
            admin_dsn=sockets.dsn(
                user=SUPERUSER, password=secrets.superuser_password, database="postgres"
            ),
            log_file=folder.log,
        )
        await self._postmaster.start()
        await ensure_database(sockets, secrets)
        write_state(folder, sockets.path)
        self._supervisor = asyncio.create_task(self._postmaster.supervise())
        log.info("postgres_started", pid=self.pid, data_dir=str(folder.root), user=account.name)

    async def stop(self) -> None:
        """Shut the server down and let the folder go; safe to repeat and to cancel.

        A cancelled stop still ends the server before it raises: the way to force is bounded.
        """
        ending = asyncio.ensure_future(self._take_down())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def _take_down(self) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.cancel()
            with suppress(asyncio.CancelledError):
                await supervisor
        if self._folder is not None:
            self._folder.state.unlink(missing_ok=True)
        postmaster, self._postmaster = self._postmaster, None
        if postmaster is not None:
            pid = postmaster.pid
            await postmaster.stop()
            log.info("postgres_stopped", pid=pid)
        if self._sockets is not None:
            discard_socket_folder(self._sockets)
        self._sockets = self._secrets = None
        lock, self._lock, self._folder = self._lock, None, None
        if lock is not None:
            lock.release()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()


def _check_reachable(folder: DataFolder, account: Account) -> None:
    """Check that PostgreSQL's account can enter the folder.

    Raises:
        ConfigurationError: it cannot; says which folder to open.

    """
    if not account.is_ours and not permits(account, 'test -x "$1"', folder.root):
        raise ConfigurationError(
            f"PostgreSQL does not run as root but as {account.name}, who may not enter "
            f"{folder.root}. Choose a folder that others may pass through, for example "
            f"--data-dir {default_data_dir()}."
        )
