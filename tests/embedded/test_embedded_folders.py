"""Folders of every name and length, and the one for the socket."""

import os
import stat
import sys
from pathlib import Path

import pytest
from embedded_support import copy_of, notes

from app.errors import ConfigurationError
from app.platform.embedded.cluster import (
    SOCKET_NAME,
    SOCKET_PATH_LIMIT,
    SocketFolder,
    choose_socket_folder,
    prepare_socket_folder,
)
from app.platform.embedded.programs import account_for
from app.platform.embedded.server import EmbeddedPostgres


def of_socket_length(parent: Path, length: int) -> Path:
    """A data folder inside which the socket's path has exactly this many bytes."""
    rest = length - len(os.fsencode(parent / "d" / "socket" / SOCKET_NAME))
    return parent / ("d" * (rest + 1))


def socket_length(socket_folder: Path) -> int:
    return len(os.fsencode(socket_folder / SOCKET_NAME))


@pytest.mark.parametrize("name", ["with space", "记忆 库", 'it\'s, "odd": 50%', "-D"])
async def test_a_folder_may_have_any_name(folder, made_once, name):
    data_dir = copy_of(made_once, folder / name)
    async with EmbeddedPostgres(data_dir) as postgres:
        assert await notes(postgres.dsn) == ["made"]


@pytest.mark.slow
async def test_a_first_start_in_a_folder_of_an_odd_and_very_long_name(folder):
    data_dir = folder / ("记 忆'" * 20) / ("d" * 200) / ("e" * 200)
    async with EmbeddedPostgres(data_dir) as postgres:
        temporary = postgres.socket_folder
        assert not temporary.is_relative_to(data_dir)
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o700
    assert not temporary.exists()


async def test_the_longest_socket_path_that_fits_is_inside_the_data_folder(folder, made_once):
    data_dir = copy_of(made_once, of_socket_length(folder, SOCKET_PATH_LIMIT))
    async with EmbeddedPostgres(data_dir) as postgres:
        assert postgres.socket_folder == data_dir / "socket"
        assert socket_length(postgres.socket_folder) == SOCKET_PATH_LIMIT
        assert await notes(postgres.dsn) == ["made"]


async def test_one_byte_more_moves_the_socket_elsewhere(folder, made_once):
    data_dir = copy_of(made_once, of_socket_length(folder, SOCKET_PATH_LIMIT + 1))
    async with EmbeddedPostgres(data_dir) as postgres:
        assert not postgres.socket_folder.is_relative_to(data_dir)
        assert await notes(postgres.dsn) == ["made"]


def test_the_limit_is_the_kernels():
    assert (107 if sys.platform == "linux" else 103) == SOCKET_PATH_LIMIT


def test_the_limit_counts_bytes_of_the_short_folder_too(tmp_path):
    base = Path("/") / (
        "b" * (SOCKET_PATH_LIMIT - socket_length(Path("/kemem-0-0123456789ab")) - 1)
    )
    room = len(str(os.geteuid())) - 1
    fitting, too_long = Path(str(base)[: len(str(base)) - room]), Path(str(base) + "b")
    chosen = choose_socket_folder(tmp_path / ("x" * 108), data_dir=tmp_path, bases=[fitting])
    assert socket_length(chosen.path) == SOCKET_PATH_LIMIT
    with pytest.raises(ConfigurationError, match="shorter --data-dir"):
        choose_socket_folder(tmp_path / ("x" * 108), data_dir=tmp_path, bases=[too_long])
    # 36 characters are 108 bytes.
    wide = choose_socket_folder(
        Path("/") / ("记" * 36), data_dir=tmp_path, bases=[too_long, Path("/tmp")]
    )
    assert wide.path.parent == Path("/tmp")


def test_a_link_in_place_of_the_socket_folder_is_refused(folder):
    (folder / "elsewhere").mkdir()
    (folder / "socket").symlink_to(folder / "elsewhere")
    with pytest.raises(ConfigurationError, match="somebody else"):
        prepare_socket_folder(SocketFolder(folder / "socket", True), account_for(folder))
    assert stat.S_IMODE((folder / "elsewhere").stat().st_mode) != 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's folder")
def test_a_folder_that_another_user_made_first_is_refused(folder):
    account = account_for(folder)
    (folder / "socket").mkdir(mode=0o777)
    os.chown(folder / "socket", 54321, 54321)
    with pytest.raises(ConfigurationError, match="somebody else"):
        prepare_socket_folder(SocketFolder(folder / "socket", True), account)
    assert (folder / "socket").stat().st_uid == 54321


def test_our_own_leftover_is_used_again_and_closed(folder):
    account = account_for(folder)
    (folder / "socket").mkdir()
    (folder / "socket").chmod(0o777)
    (folder / "socket" / f"{SOCKET_NAME}.lock").write_text("1\n")
    prepare_socket_folder(SocketFolder(folder / "socket", True), account)
    assert stat.S_IMODE((folder / "socket").stat().st_mode) == 0o700
    assert (folder / "socket").stat().st_uid == account.uid
    assert list((folder / "socket").iterdir()) == []


async def test_a_folder_of_other_files_is_not_taken_for_a_cluster(folder):
    (folder / "data" / "postgres-18").mkdir(parents=True)
    (folder / "data" / "postgres-18" / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigurationError, match="Move it away"):
        await EmbeddedPostgres(folder / "data").start()
    assert (folder / "data" / "postgres-18" / "thesis.txt").exists()
