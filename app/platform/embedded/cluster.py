"""The cluster of the embedded PostgreSQL: made whole or not at all, and what is in it.

`initdb` works in a folder beside the final one, which takes its name only when it is
complete, so a killed first start leaves nothing that a later one could mistake for data.
"""

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

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
from app.platform.embedded.programs import Account, Binaries, ServerLog, ended, spawn
from app.platform.embedded.sockets import SocketFolder

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
