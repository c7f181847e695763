"""What is left when something is killed, and that the next start copes with it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
import structlog
from embedded_support import (
    REPOSITORY,
    SERVICE,
    eventually,
    is_running,
    notes,
    query,
    servers_on,
    service_on,
    write,
)

from app.platform.embedded.cluster import SocketFolder
from app.platform.embedded.postmaster import Installation, command_of
from app.platform.embedded.programs import account_for, find_binaries
from app.platform.embedded.server import EmbeddedPostgres

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends a child with its parent"
)


@linux_only
async def test_killing_the_service_ends_postgres_and_loses_nothing(data_dir):
    async with service_on(data_dir) as service:
        await write(service.dsn, "before the kill")
        await service.kill()
        await eventually(lambda: not servers_on(data_dir))
    async with EmbeddedPostgres(data_dir) as postgres:
        assert await notes(postgres.dsn) == ["before the kill", "made"]


@pytest.fixture
def left_behind(data_dir) -> Iterator[subprocess.Popen[bytes]]:
    """A server on the folder that nobody owns and no signal has told to end."""
    account = account_for(data_dir / "postgres-18")
    sockets = SocketFolder(data_dir / "socket", temporary=False)
    parts = Installation(data_dir / "postgres-18", find_binaries(), account, sockets)
    identity = {} if account.is_ours else {"user": account.uid, "group": account.gid}
    process = subprocess.Popen(command_of(parts), cwd="/", stderr=subprocess.DEVNULL, **identity)
    yield process
    process.kill()
    process.wait()


async def test_a_server_that_outlived_its_service_is_shut_down_and_replaced(data_dir, left_behind):
    pid_file = data_dir / "postgres-18" / "postmaster.pid"
    await eventually(lambda: pid_file.exists() and "ready" in pid_file.read_text())
    with structlog.testing.capture_logs() as lines:
        async with EmbeddedPostgres(data_dir) as postgres:
            assert left_behind.wait() == 0
            assert await notes(postgres.dsn) == ["made"]
    assert [line["event"] for line in lines][:2] == ["postgres_orphan_found", "postgres_started"]


async def test_a_killed_postmaster_is_restarted_in_the_same_place(data_dir):
    with structlog.testing.capture_logs() as lines:
        async with EmbeddedPostgres(data_dir) as postgres:
            pool = await asyncpg.create_pool(postgres.dsn, min_size=2)
            await pool.execute("INSERT INTO notes VALUES ('committed')")
            first, dsn = postgres.pid, postgres.dsn
            assert first is not None
            os.kill(first, signal.SIGKILL)
            await eventually(lambda: any(line["event"] == "postgres_restarted" for line in lines))
            assert postgres.pid not in {None, first}
            assert postgres.dsn == dsn
            rows = await pool.fetch("SELECT text FROM notes ORDER BY 1")
            assert [row["text"] for row in rows] == ["committed", "made"]
            await pool.close()
    [died] = [line for line in lines if line["event"] == "postgres_died"]
    assert died["exit_code"] == -signal.SIGKILL
    assert servers_on(data_dir) == []


@pytest.mark.slow
async def test_backends_of_a_killed_postmaster_are_ended_before_the_next(data_dir):
    with structlog.testing.capture_logs() as lines:
        async with EmbeddedPostgres(data_dir) as postgres:
            busy = asyncio.create_task(
                query(
                    postgres.dsn,
                    "SELECT count(*) AS backend FROM generate_series(1, 1e12::bigint)",
                )
            )
            [backend] = await _active_backend(postgres.superuser_dsn)
            os.kill(postgres.pid, signal.SIGKILL)
            await eventually(lambda: any(line["event"] == "postgres_restarted" for line in lines))
            assert not is_running(backend)
            assert await notes(postgres.dsn) == ["made"]
            with pytest.raises((asyncpg.PostgresError, OSError)):
                await busy


async def _active_backend(dsn: str) -> list[int]:
    while True:
        rows = await query(
            dsn,
            "SELECT pid FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 1e12%'"
            " AND pid <> pg_backend_pid() AND state = 'active'",
        )
        if rows:
            return [row["pid"] for row in rows]
        await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_repeated_deaths_are_restarted_with_growing_pauses(data_dir):
    with structlog.testing.capture_logs() as lines:

        def restarts() -> int:
            return sum(line["event"] == "postgres_restarted" for line in lines)

        async with EmbeddedPostgres(data_dir) as postgres:
            times = []
            for count in range(1, 5):
                os.kill(postgres.pid, signal.SIGKILL)
                begin = asyncio.get_running_loop().time()
                await eventually(lambda count=count: restarts() == count)
                times.append(asyncio.get_running_loop().time() - begin)
            # A tenth of a second at first, then twice as long each time.
            assert all(time >= 0.1 * 2**number for number, time in enumerate(times)), times
            assert await notes(postgres.dsn) == ["made"]


async def test_a_failing_restart_is_tried_again_until_it_works(data_dir):
    configuration = data_dir / "postgres-18" / "postgresql.conf"
    good = configuration.read_bytes()
    with structlog.testing.capture_logs() as lines:

        def seen(event: str) -> bool:
            return any(line["event"] == event for line in lines)

        async with EmbeddedPostgres(data_dir) as postgres:
            configuration.write_bytes(good + b"no_such_setting = 1\n")
            os.kill(postgres.pid, signal.SIGKILL)
            await eventually(lambda: seen("postgres_restart_failed"))
            assert postgres.pid is None
            configuration.write_bytes(good)
            await eventually(lambda: seen("postgres_restarted"))
            assert await notes(postgres.dsn) == ["made"]


@pytest.fixture
def stranger(data_dir) -> Iterator[subprocess.Popen[bytes]]:
    """A process of PostgreSQL's own account that has nothing to do with it."""
    account = account_for(data_dir / "postgres-18")
    identity = {} if account.is_ours else {"user": account.uid, "group": account.gid}
    process = subprocess.Popen(["sleep", "600"], cwd="/", **identity)
    yield process
    process.kill()
    process.wait()


async def test_a_stranger_with_the_recorded_pid_neither_blocks_nor_dies(data_dir, stranger):
    for name in ("postgres-18/postmaster.pid", "socket/.s.PGSQL.5432.lock"):
        leave_pid_file(data_dir / name, stranger.pid, data_dir)
    async with EmbeddedPostgres(data_dir) as postgres:
        assert await notes(postgres.dsn) == ["made"]
    assert stranger.poll() is None


def leave_pid_file(path: Path, pid: int, data_dir: Path) -> None:
    account = account_for(data_dir / "postgres-18")
    path.write_text(f"{pid}\n{data_dir / 'postgres-18'}\n1700000000\n5432\n\n\n\nready\n")
    os.chown(path, account.uid, account.gid)
    path.chmod(0o600)


async def test_a_killed_first_start_leaves_nothing_half_made(folder):
    data_dir = folder / "data"
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVICE, data_dir, cwd=REPOSITORY
    )
    await eventually(lambda: [*data_dir.glob("postgres-18.new-*/cluster/base")])
    process.kill()
    await process.wait()
    assert not (data_dir / "postgres-18").exists()
    async with EmbeddedPostgres(data_dir) as postgres:
        await write(postgres.dsn, "made after all")
    assert [*data_dir.glob("postgres-18.new-*")] == []
