"""What the server is started with, and the file it logs to."""

import stat
from pathlib import Path

import pytest

from app.platform.embedded.cluster import SocketFolder
from app.platform.embedded.postmaster import Installation, command_of
from app.platform.embedded.programs import Account, Binaries, ServerLog, find_binaries


@pytest.fixture
def parts() -> Installation:
    return Installation(
        cluster=Path("/data/my folder/postgres-18"),
        binaries=Binaries(Path("/wheel")),
        account=Account("somebody", 1, 1),
        sockets=SocketFolder(Path("/data/my folder/socket"), temporary=False),
    )


def test_the_socket_folder_is_quoted_for_postgres(parts):
    assert 'unix_socket_directories="/data/my folder/socket"' in command_of(parts)


@pytest.mark.parametrize(("megabytes", "expected"), [(64, True), (255, True), (256, False)])
def test_a_small_shared_memory_folder_is_not_used(parts, megabytes, expected):
    command = command_of(parts, shm_bytes=lambda: megabytes * 1024 * 1024)
    assert ("dynamic_shared_memory_type=mmap" in command) is expected


def test_titles_tell_clusters_apart(parts):
    other = Installation(Path("/other"), parts.binaries, parts.account, parts.sockets)
    assert parts.title != other.title
    # PostgreSQL cuts longer names, and then they would not be found again.
    assert len(parts.title) < 64


def test_the_wheel_brings_postgres_18():
    assert find_binaries().root.name == "pginstall18"
    assert find_binaries().initdb.is_file()


def test_a_full_log_is_put_aside_and_only_this_run_is_quoted(tmp_path):
    log = ServerLog(tmp_path / "postgres.log")
    with log.open() as file:
        file.write(b"first run\n" * 2_000_000)
    with log.open() as file:
        file.write(b"second run\n")
    assert log.last_lines() == "second run"
    assert (tmp_path / "postgres.log.1").stat().st_size == 20_000_000
    with log.open() as file:
        file.write("\n".join(f"line {number}" for number in range(100)).encode())
    assert log.last_lines().splitlines() == [f"line {number}" for number in range(85, 100)]
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
