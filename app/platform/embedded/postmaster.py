"""The PostgreSQL server as a child of this process: started, watched, stopped; and the end of what
a killed service or server left running on its cluster.

It may have predecessors. A service that was killed can leave a server behind, a server that was
killed can leave its backends, and a pid in a file may be a stranger's by now. Nobody is signalled
before it is known to be PostgreSQL on our own cluster.

Only the holder of the data folder ends what was left: processes that still run on its cluster are
orphans.
"""

import asyncio
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import psutil
import structlog

from app.errors import ConfigurationError
from app.platform.embedded.cluster import PORT, SocketFolder, prepare_socket_folder
from app.platform.embedded.programs import Account, Binaries, ServerLog, ended, spawn
from app.settings import EMBEDDED_CONNECTIONS

log = structlog.get_logger(__name__)

_FAST_SHUTDOWN_SECONDS = 30.0
_IMMEDIATE_SHUTDOWN_SECONDS = 10.0
_READY_POLL_SECONDS = 0.05
_STILL_STARTING_LOG_SECONDS = 10.0
_SHARED_MEMORY_SECONDS = 30.0
_FIRST_RESTART_SECONDS = 0.1
_LONGEST_RESTART_SECONDS = 30.0
_HEALTHY_AFTER_SECONDS = 60.0
_SMALL_SHM_BYTES = 256 * 1024 * 1024

SETTINGS = {
    # One way in: the private socket. Names and numbers below win over postgresql.conf.
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": str(EMBEDDED_CONNECTIONS + 20),
    "shared_buffers": "128MB",
    "max_wal_size": "512MB",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # In containers `try` may get pages that the cgroup refuses at the first touch: SIGBUS.
    "huge_pages": "off",
    # Statements here take milliseconds; compiling one takes longer than it saves.
    "jit": "off",
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] ",
    # Details and statements carry what people said, which belongs in no log.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}


@dataclass(frozen=True, slots=True)
class Installation:
    """Everything a server is started with."""

    cluster: Path
    binaries: Binaries
    account: Account
    sockets: SocketFolder

    @property
    def title(self) -> str:
        """Title of every backend in the process list; distinguishes clusters."""
        return f"kemem-{hashlib.sha256(os.fsencode(self.cluster)).hexdigest()[:12]}"


class PostmasterExitedError(ConfigurationError):
    """PostgreSQL ended before it was ready."""

    def __init__(self, code: int, server_log: ServerLog) -> None:
        self.excerpt = server_log.last_lines()
        super().__init__(
            f"PostgreSQL ended with code {code} before it was ready:\n"
            f"{self.excerpt}\nThe whole log is {server_log.path}."
        )


class Postmaster:
    """One server process after the other, on one cluster and one socket folder."""

    def __init__(self, installation: Installation, *, admin_dsn: str, log_file: Path) -> None:
        self._installation = installation
        self._admin_dsn = admin_dsn
        self._log = ServerLog(log_file)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Start the server and wait until it answers, however long recovery takes.

        Raises:
            ConfigurationError: it ended instead; the message quotes its log.

        """
        deadline = time.monotonic() + _SHARED_MEMORY_SECONDS
        while True:
            try:
                return await self._start_once()
            except PostmasterExitedError as error:
                # The kernel has not yet taken everything from the backends of a dead server.
                if "still in use" not in error.excerpt or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_FIRST_RESTART_SECONDS)

    async def _start_once(self) -> None:
        parts = self._installation
        await clear_the_way(parts.cluster, account=parts.account, title=parts.title)
        prepare_socket_folder(parts.sockets, parts.account)
        with self._log.open() as output:
            self._process = spawn(command_of(parts), account=parts.account, output=output)
        try:
            await self._wait_until_ready(self._process)
        except BaseException:
            await self.stop()
            raise

    async def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        """Return when the server answers.

        Raises:
            PostmasterExitedError: it ended before.
            ConfigurationError: it refuses our connections.

        """
        reminder = time.monotonic() + _STILL_STARTING_LOG_SECONDS
        while (code := process.poll()) is None:
            try:
                connection = await asyncpg.connect(self._admin_dsn, timeout=10)
            except asyncpg.InvalidPasswordError as error:
                raise ConfigurationError(
                    f"PostgreSQL in {self._installation.cluster} refuses the password in the "
                    "data folder. Restore both from the same backup."
                ) from error
            except (OSError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError):
                if time.monotonic() > reminder:
                    log.info("postgres_start_delayed", pid=process.pid)
                    reminder += _STILL_STARTING_LOG_SECONDS
                await asyncio.sleep(_READY_POLL_SECONDS)
                continue
            await connection.close()
            return
        raise PostmasterExitedError(code, self._log)

    async def stop(self) -> None:
        """End the server: first in good order, then at once, then by force. Safe to repeat."""
        process = self._process
        if process is None:
            return
        for number, timeout in (
            (signal.SIGINT, _FAST_SHUTDOWN_SECONDS),
            (signal.SIGQUIT, _IMMEDIATE_SHUTDOWN_SECONDS),
        ):
            # Popen sends nothing to a process whose end it has seen.
            process.send_signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(ended(process), timeout)
                return
        process.kill()
        await ended(process)

    async def supervise(self) -> None:
        """Restart the server whenever it dies; runs until it is cancelled.

        Pools find the new one in the same socket folder.
        """
        delay = _FIRST_RESTART_SECONDS
        while self._process is not None:
            began = time.monotonic()
            code = await ended(self._process)
            log.error("postgres_died", pid=self._process.pid, exit_code=code)
            if time.monotonic() - began > _HEALTHY_AFTER_SECONDS:
                delay = _FIRST_RESTART_SECONDS
            delay = await self._restart(delay)
            log.warning("postgres_restarted", pid=self._process.pid)

    async def _restart(self, delay: float) -> float:
        # Never gives up: a cause such as a full disk may end, and readiness reports it meanwhile.
        while True:
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_RESTART_SECONDS)
            try:
                await self.start()
            except (ConfigurationError, OSError, asyncpg.PostgresError) as error:
                log.error("postgres_restart_failed", reason=str(error), next_in_seconds=delay)  # noqa: TRY400  # The log is quoted; a traceback adds nothing.
            else:
                return delay


def command_of(parts: Installation, *, shm_bytes: Callable[[], int] | None = None) -> list[str]:
    """The command line of the server, without a shell and without a secret."""
    settings = SETTINGS | {
        "cluster_name": parts.title,
        # Quoted for PostgreSQL's own list syntax; the folder's name has no quote in it.
        "unix_socket_directories": f'"{parts.sockets.path}"',
    }
    if (shm_bytes or _shm_bytes)() < _SMALL_SHM_BYTES:
        # Docker gives 64 MB of /dev/shm, which one parallel query can exceed.
        settings["dynamic_shared_memory_type"] = "mmap"
    command = [str(parts.binaries.postgres), "-D", str(parts.cluster)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    return command


def _shm_bytes() -> int:
    """Size of /dev/shm; where there is none (macOS) the system's own way has no such limit."""
    try:
        status = os.statvfs("/dev/shm")  # noqa: S108  # Only measured.
    except OSError:
        return _SMALL_SHM_BYTES
    return status.f_frsize * status.f_blocks


_ENDING_SECONDS = 60.0
_ORPHAN_SECONDS = 3.0
_POLL_SECONDS = 0.05


async def clear_the_way(cluster: Path, *, account: Account, title: str) -> None:
    """End every process on the cluster, and drop a pid file that names a stranger.

    Args:
        cluster: the folder of the cluster.
        account: whom its processes run as; others' are never touched.
        title: the `cluster_name` they show in the process list.

    """
    pid_file = cluster / "postmaster.pid"
    recorded = _recorded_pid(pid_file)
    found = processes_on(cluster, account=account, title=title)
    leader = next((process for process in found if process.pid == recorded), None)
    if leader is not None:
        log.warning("postgres_orphan_found", pid=leader.pid)
        await _end(leader)
        found = processes_on(cluster, account=account, title=title)
    if found:
        await _end_orphans(found)
    if recorded is not None and psutil.pid_exists(recorded):
        # PostgreSQL would take another process of this number for a server. With no process
        # left on the cluster, the file protects nothing.
        with suppress(FileNotFoundError):
            pid_file.unlink()
            log.info("postgres_pid_file_removed", pid=recorded)


def processes_on(cluster: Path, *, account: Account, title: str) -> list[psutil.Process]:
    """PostgreSQL's processes on this very cluster."""
    folder = os.path.realpath(cluster)
    return [
        process
        for process in psutil.process_iter()
        if _is_on(process, folder=folder, cluster=str(cluster), account=account, title=title)
    ]


def _is_on(
    process: psutil.Process, *, folder: str, cluster: str, account: Account, title: str
) -> bool:
    try:
        if process.uids().effective != account.uid or process.name() != "postgres":
            return False
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        try:
            return bool(process.cwd() == folder)
        except psutil.AccessDenied:
            # Root without CAP_SYS_PTRACE, as in Docker, may read the command line at least.
            arguments = process.cmdline()
            is_server = "-D" in arguments[:-1] and arguments[arguments.index("-D") + 1] == cluster
            return is_server or str(arguments[0]).startswith(f"postgres: {title}: ")
    except (psutil.Error, IndexError):
        return False


def _recorded_pid(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return None


async def _end(leader: psutil.Process) -> None:
    for number, timeout in (
        (signal.SIGINT, _ENDING_SECONDS),
        (signal.SIGQUIT, _IMMEDIATE_SHUTDOWN_SECONDS),
        (signal.SIGKILL, _IMMEDIATE_SHUTDOWN_SECONDS),
    ):
        _signal(leader, number)
        if await _are_gone([leader], timeout):
            return


async def _end_orphans(orphans: list[psutil.Process]) -> None:
    """Backends without a server end by themselves, unless they are in the midst of a query."""
    if await _are_gone(orphans, _ORPHAN_SECONDS):
        return
    log.warning("postgres_orphans_ended", pids=[orphan.pid for orphan in orphans])
    for number in (signal.SIGQUIT, signal.SIGKILL):
        for orphan in orphans:
            _signal(orphan, number)
        if await _are_gone(orphans, _IMMEDIATE_SHUTDOWN_SECONDS):
            return


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    # psutil compares the start time first, so a reused number is not signalled.
    with suppress(psutil.Error):
        process.send_signal(number)


async def _are_gone(processes: list[psutil.Process], limit_seconds: float) -> bool:
    deadline = time.monotonic() + limit_seconds
    while any(_is_alive(process) for process in processes):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _is_alive(process: psutil.Process) -> bool:
    # In a container whose first process does not wait for others, the dead stay zombies.
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
