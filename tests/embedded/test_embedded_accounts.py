"""Root lends PostgreSQL an account; other users have their own beside it."""

import os
import pwd
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from embedded_support import copy_of, notes, query, service_on, write

from app.errors import ConfigurationError
from app.platform.embedded.data_folder import default_data_dir
from app.platform.embedded.programs import Account, account_for, find_binaries, permits
from app.platform.embedded.server import EmbeddedPostgres

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be other users")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def groups_of(process: psutil.Process) -> list[int]:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return [int(group) for group in status.split("Groups:")[1].splitlines()[0].split()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@as_root
async def test_under_root_postgres_is_an_account_without_privileges(data_dir):
    async with EmbeddedPostgres(data_dir) as postgres:
        process = psutil.Process(postgres.pid)
        account = account_for(Path("/nonexistent"))
        assert account.name in {"kemem", "postgres", "nobody"}
        assert set(process.uids()) == {account.uid}
        assert set(process.gids()) == {account.gid}
        assert (data_dir / "postgres-18").stat().st_uid == account.uid
        assert postgres.socket_folder.stat().st_uid == account.uid
        assert (data_dir / "secrets.json").stat().st_uid == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@as_root
async def test_groups_of_root_do_not_go_to_postgres(data_dir):
    root = Account("root", 0, 0)
    async with service_on(data_dir, account=root, groups=[0, 54321]) as service:
        assert groups_of(psutil.Process(service.process.pid)) == [0, 54321]
        assert groups_of(psutil.Process(service.postmaster)) == []


@as_root
async def test_the_owner_of_a_cluster_stays_its_account(folder, made_once):
    data_dir = copy_of(made_once, folder / "data")
    for name in ("postgres-18", "socket"):
        for path in (data_dir / name, *(data_dir / name).rglob("*")):
            os.chown(path, 54321, 54321)
    async with EmbeddedPostgres(data_dir) as postgres:
        assert psutil.Process(postgres.pid).uids().real == 54321
        assert await notes(postgres.dsn) == ["made"]


@as_root
async def test_a_folder_closed_to_the_account_is_refused_and_not_opened(folder):
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(ConfigurationError, match="--data-dir /var/lib/kemem"):
        await EmbeddedPostgres(closed / "data").start()
    assert mode(closed) == 0o700


@as_root
async def test_a_folder_of_another_user_is_refused(folder):
    theirs = folder / "theirs"
    theirs.mkdir()
    os.chown(theirs, 54321, 54321)
    with pytest.raises(ConfigurationError, match="belongs to the user with uid 54321"):
        await EmbeddedPostgres(theirs).start()
    assert list(theirs.iterdir()) == []


@as_root
@pytest.mark.slow
async def test_programs_that_the_account_cannot_read_are_copied_once(folder):
    wheel = find_binaries().root
    hidden = folder / "hidden"
    hidden.mkdir(mode=0o700)
    package = hidden / "site-packages" / wheel.parent.name
    shutil.copytree(wheel, package / wheel.name)
    libraries = wheel.parent.with_name(f"{wheel.parent.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, package.with_name(libraries.name))
    data_dir = folder / "data"
    for _ in range(2):
        async with EmbeddedPostgres(data_dir, binaries=package / wheel.name) as postgres:
            [copy] = data_dir.glob("binaries-*")
            assert psutil.Process(postgres.pid).exe().startswith(str(copy))
            assert copy.stat().st_uid == 0
            made = copy.stat().st_ctime_ns
            await query(postgres.dsn, "SELECT '[1,2]'::vector <-> '[1,3]'::vector AS distance")
    # A new wheel replaces the copy; what a killed copying left goes with it.
    (data_dir / "binaries-unfinished.new").mkdir()
    os.utime(package / wheel.name / "bin" / "postgres", (1, 1))
    async with EmbeddedPostgres(data_dir, binaries=package / wheel.name):
        [copy] = data_dir.glob("binaries-*")
        assert copy.stat().st_ctime_ns != made
    assert mode(hidden) == 0o700


@as_root
@pytest.mark.slow
async def test_a_second_user_has_a_service_beside_roots(folder, data_dir):
    entry = pwd.getpwnam("nobody")
    nobody = Account("nobody", entry.pw_uid, entry.pw_gid)
    python = next(
        (
            candidate
            for candidate in (sys.executable, shutil.which("python3.11", path="/usr/bin:/bin"))
            if candidate and permits(nobody, '"$1" -c ""', Path(candidate))
        ),
        None,
    )
    if python is None:
        pytest.skip("no Python that nobody may run")
    theirs = folder / "nobody"
    theirs.mkdir()
    os.chown(theirs, nobody.uid, nobody.gid)
    packages = f"{Path(psutil.__file__).parents[1]}{os.pathsep}{Path(__file__).parents[2]}"
    async with (
        EmbeddedPostgres(data_dir) as postgres,
        service_on(
            theirs / "data", account=nobody, python=python, environment={"PYTHONPATH": packages}
        ) as service,
    ):
        await write(service.dsn, "theirs")
        assert await notes(service.dsn) == ["theirs"]
        assert await notes(postgres.dsn) == ["made"]
        assert psutil.Process(service.postmaster).uids().real == nobody.uid
        assert mode(theirs / "data") == 0o700
        assert (theirs / "data" / "secrets.json").stat().st_uid == nobody.uid


def test_the_default_folder_is_the_users_own():
    if os.geteuid() == 0:
        assert default_data_dir() == Path("/var/lib/kemem")
    else:
        assert default_data_dir().is_relative_to(Path.home())
    assert Path(tempfile.gettempdir()) not in default_data_dir().parents
