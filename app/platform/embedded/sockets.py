"""Where PostgreSQL's socket lives: a private folder whose path is short enough.

The kernel keeps a socket's whole path in 108 bytes with the closing zero (macOS: 104).
A data folder may be deeper than that, or named in a way that some client takes for a
list of hosts; then a short folder elsewhere is used.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from app.errors import ConfigurationError
from app.platform.embedded.programs import Account, permits

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
SOCKET_PATH_LIMIT = 107 if sys.platform == "linux" else 103

# A comma or a colon is a list of hosts to clients, a quote is syntax to PostgreSQL.
_NOT_IN_A_PATH = frozenset(",:'\"\\")


@dataclass(frozen=True, slots=True)
class SocketFolder:
    """The folder that the server and its clients meet in.

    `temporary` is true for one outside the data folder, which is removed at the end.
    """

    path: Path
    temporary: bool

    def dsn(self, *, user: str, password: str, database: str) -> str:
        """A libpq URL. Names the port, or PGPORT in the environment would change it."""
        folder = quote(str(self.path), safe="")
        return (
            f"postgresql://{user}:{quote(password, safe='')}@/{database}?host={folder}&port={PORT}"
        )


def choose_socket_folder(preferred: Path, *, data_dir: Path, bases: Iterable[Path]) -> SocketFolder:
    """The preferred folder when its path will do, else a short one in the first base that will.

    Raises:
        ConfigurationError: no base is short enough.

    """
    if _will_do(preferred):
        return SocketFolder(preferred, temporary=False)
    digest = hashlib.sha256(os.fsencode(os.path.realpath(data_dir))).hexdigest()[:12]
    for base in bases:
        folder = base / f"kemem-{os.geteuid()}-{digest}"
        if _will_do(folder):
            return SocketFolder(folder, temporary=True)
    raise ConfigurationError(
        f"No folder for PostgreSQL's socket: the path of {data_dir} is too long or has "
        "characters that "
        "clients cannot take, and no folder for temporary files will do. Choose a shorter "
        "--data-dir."
    )


def short_bases(account: Account) -> list[Path]:
    """Folders for temporary files that the account can enter.

    Not /run/user: it vanishes at logout under a service that was left running.
    """
    bases = [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108  # Checked when it is made.
    return [base for base in bases if permits(account, 'test -d "$1" && test -x "$1"', base)]


def prepare_socket_folder(folder: SocketFolder, account: Account) -> None:
    """Make the folder, private to the account, without what a killed server left in it.

    Raises:
        ConfigurationError: another user made it, or it is a link.

    """
    with suppress(FileExistsError):
        folder.path.mkdir(mode=0o700)
    try:
        # Everything goes through one descriptor: a name could be exchanged in between.
        opened = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _not_ours(folder.path) from error
    try:
        if os.fstat(opened).st_uid not in {os.geteuid(), account.uid}:
            raise _not_ours(folder.path)
        if os.fstat(opened).st_uid != account.uid:
            os.fchown(opened, account.uid, account.gid)
        os.fchmod(opened, 0o700)
        # The lock beside a dead socket names a pid that may be a stranger's by now, which
        # PostgreSQL would respect. Who holds the data folder knows that it is stale.
        for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=opened)
    finally:
        os.close(opened)


def discard_socket_folder(folder: SocketFolder) -> None:
    """Remove a temporary folder; one inside the data folder stays."""
    if folder.temporary:
        with suppress(OSError):
            for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
                (folder.path / name).unlink(missing_ok=True)
            folder.path.rmdir()


def _will_do(folder: Path) -> bool:
    text = str(folder)
    try:
        size = len(str(folder / SOCKET_NAME).encode())
    except UnicodeEncodeError:
        # A name that is no UTF-8 does not survive a URL.
        return False
    return (
        size <= SOCKET_PATH_LIMIT
        and text.isprintable()
        and text == text.strip()
        and _NOT_IN_A_PATH.isdisjoint(text)
    )


def _not_ours(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"The folder {path} for PostgreSQL's socket was made by somebody else, or is a link. "
        "Remove it, or choose a shorter --data-dir, inside which the socket then lives."
    )
