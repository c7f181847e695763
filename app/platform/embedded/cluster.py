"""The cluster of the embedded PostgreSQL (made whole or not at all, and what is in it), and where
its socket lives: a private folder whose path is short enough.

`initdb` works in a folder beside the final one, which takes its name only when it is complete, so a
killed first start leaves nothing that a later one could mistake for data.

The kernel keeps a socket's whole path in 108 bytes with the closing zero (macOS: 104). A data
folder may be deeper than that, or named in a way that some client takes for a list of hosts; then a
short folder elsewhere is used.
"""

import asyncio
import hashlib
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import asyncpg

from app.errors import ConfigurationError
from app.platform.database.logins import DatabaseUrls
from app.platform.embedded.data_folder import (
    POSTGRES_MAJOR,
    ClusterPasswords,
    DataFolder,
    complete_secrets,
    create_secrets,
    sync_folder,
)
from app.platform.embedded.programs import Account, Binaries, ServerLog, ended, permits, spawn

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


SUPERUSER = "kemem_superuser"
MIGRATION_LOGIN = "kemem_service"
"""Owns the database. It served as well in earlier releases, and is called after that."""
SERVING_LOGIN = "kemem_serving"
DATABASE = "kemem"

_UNFINISHED = ".new-"
_LEFTOVER_SECONDS = 5.0


async def ensure_cluster(
    folder: DataFolder, binaries: Binaries, account: Account
) -> ClusterPasswords:
    """Make the cluster when there is none, and return its passwords.

    Only the holder of the data folder may call this.

    Raises:
        ConfigurationError: `initdb` failed, or passwords of an existing cluster are missing.

    """
    await asyncio.to_thread(_remove_leftovers, folder)
    if _is_cluster(folder.cluster):
        return complete_secrets(folder)
    # On disk first: passwords without a cluster are harmless, the opposite is not.
    fresh = create_secrets(folder)
    draft = folder.root / f"{folder.cluster.name}{_UNFINISHED}{secrets.token_hex(4)}"
    _make_owned(draft, account)
    try:
        await _initdb(draft, binaries, account, fresh.superuser_password, ServerLog(folder.log))
        (draft / "cluster").rename(folder.cluster)
        sync_folder(folder.root)
    finally:
        await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)
    return fresh


def _is_cluster(path: Path) -> bool:
    """Whether a cluster of our version is in the folder.

    Raises:
        ConfigurationError: there is one of another version of PostgreSQL.

    """
    if (path / "PG_VERSION").is_file():
        return True
    if path.is_dir() and any(path.iterdir()):
        raise ConfigurationError(
            f"The folder {path} has files in it but is no PostgreSQL {POSTGRES_MAJOR} cluster. "
            "Move it away, or choose another --data-dir."
        )
    return False


def _remove_leftovers(folder: DataFolder) -> None:
    # Never one fixed name: an initdb that outlived its service may still write there, for
    # as long as it takes to notice. What it holds on to is for the start after this one.
    deadline = time.monotonic() + _LEFTOVER_SECONDS
    for leftover in folder.root.glob(f"{folder.cluster.name}{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
        while leftover.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
            shutil.rmtree(leftover, ignore_errors=True)


def _make_owned(path: Path, account: Account) -> None:
    path.mkdir(mode=0o700)
    if not account.is_ours:
        os.chown(path, account.uid, account.gid)


async def _initdb(
    draft: Path, binaries: Binaries, account: Account, password: str, log: ServerLog
) -> None:
    """Make the cluster in a draft folder.

    Raises:
        ConfigurationError: PostgreSQL could not make it; quotes its log.

    """
    password_file = draft / "password"
    with open(os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: ASYNC230, PTH123  # A mode from the start.
        file.write(password)
    if not account.is_ours:
        os.chown(password_file, account.uid, account.gid)
    command = [
        str(binaries.initdb),
        f"--pgdata={draft / 'cluster'}",
        f"--username={SUPERUSER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        # Built in, so that order and case do not change with the system's libraries,
        # and macOS, which may not know the locale, has it too.
        "--locale-provider=builtin",
        "--locale=C.UTF-8",
        "--no-instructions",
    ]
    with log.open() as output:
        process = spawn(command, account=account, output=output)
    try:
        code = await ended(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if code != 0:
        raise ConfigurationError(
            f"PostgreSQL could not make its cluster in {draft.parent}:\n"
            f"{log.last_lines()}\nThe whole log is {log.path}."
        )


async def ensure_database(sockets: SocketFolder, passwords: ClusterPasswords) -> None:
    """Make the two logins, the database and pgvector in it; safe to repeat.

    The rights of the login that serves come with the schema.
    """
    async with _superuser(sockets, passwords, "postgres") as connection:
        await _ensure_role(connection, MIGRATION_LOGIN, "CREATEROLE", passwords.service_password)
        await _ensure_role(
            connection, SERVING_LOGIN, "NOCREATEROLE NOINHERIT", passwords.serving_password
        )
        if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", DATABASE):
            await connection.execute(f"CREATE DATABASE {DATABASE} OWNER {MIGRATION_LOGIN}")
    async with _superuser(sockets, passwords, DATABASE) as connection:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        # Does nothing unless a newer wheel has brought a newer pgvector.
        await connection.execute("SET client_min_messages = warning")
        await connection.execute("ALTER EXTENSION vector UPDATE")


async def _ensure_role(
    connection: asyncpg.Connection, name: str, rights: str, password: str
) -> None:
    if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", name):
        await connection.execute(f"CREATE ROLE {name}")
    # Every time, so that role and file agree also after a crash between the two.
    change = await connection.fetchval(
        f"SELECT format('ALTER ROLE %I LOGIN NOSUPERUSER {rights} PASSWORD %L',"
        " $1::text, $2::text)",
        name,
        password,
    )
    await connection.execute(change)


def urls_of(sockets: SocketFolder, passwords: ClusterPasswords) -> DatabaseUrls:
    """URLs of the database for its two logins."""
    return DatabaseUrls(
        migration=sockets.dsn(
            user=MIGRATION_LOGIN, password=passwords.service_password, database=DATABASE
        ),
        serving=sockets.dsn(
            user=SERVING_LOGIN, password=passwords.serving_password, database=DATABASE
        ),
    )


@asynccontextmanager
async def _superuser(
    sockets: SocketFolder, passwords: ClusterPasswords, database: str
) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(
        sockets.dsn(user=SUPERUSER, password=passwords.superuser_password, database=database)
    )
    try:
        yield connection
    finally:
        await connection.close()
