"""Finds and ends processes that a killed service or server left running on a cluster.

Only the holder of the data folder calls this, so processes that still run on the cluster are
orphans.
"""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import structlog

from app.platform.embedded.accounts import Account

log = structlog.get_logger(__name__)

_FAST_SHUTDOWN_SECONDS = 60.0
_IMMEDIATE_SHUTDOWN_SECONDS = 10.0
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
        (signal.SIGINT, _FAST_SHUTDOWN_SECONDS),
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
