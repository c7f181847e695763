"""One server and one migrated database per worker; each test in a tenant of its own.

Tests commit for real: a rolled-back outer transaction would keep the tenant setting alive
and hide a missing one. Nobody cleans up; the database goes with its folder.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.application import started
from tests.support.databases import (
    make_logins,
    migrated_database,
    new_database,
    served,
    spare_the_disk,
    throwaway_server,
)
from tests.support.owner_connections import kept_connections
from tests.support.service import USAGE_FLUSH, client_of, settings_of
from tests.support.tenants import Caller, made_for_one_test, make_tenant


@pytest.fixture(scope="session")
def data_folder() -> Iterator[Path]:
    """A short folder open to all: pytest's own are closed to the account that root lends."""
    path = Path(tempfile.mkdtemp(prefix="kemem-tests-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
async def postgres(data_folder: Path) -> AsyncIterator[EmbeddedPostgres]:
    async with throwaway_server(data_folder / "data") as server, kept_connections():
        await make_logins(server)
        await spare_the_disk(server)
        yield server


@pytest.fixture(scope="session")
async def dsn(postgres: EmbeddedPostgres) -> str:
    """The migrated database that API tests share, for its owner; the service uses `served`."""
    return await migrated_database(postgres, "api")


@pytest.fixture(scope="session")
async def postgres_dsn(postgres: EmbeddedPostgres) -> str:
    """An empty database, for tests of SQL alone."""
    return await new_database(postgres, "scratch")


@pytest.fixture(scope="session")
def settings() -> Settings:
    return settings_of()


@pytest.fixture(scope="session")
async def app(dsn: str, settings: Settings) -> AsyncIterator[FastAPI]:
    """The whole service, reached without a network."""
    async with started(open_runtime(settings, served(dsn), usage_flush=USAGE_FLUSH)) as application:
        yield application


@pytest.fixture(scope="session")
async def runtime(app: FastAPI, dsn: str, settings: Settings) -> AsyncIterator[Runtime]:
    """A second runtime on the same database, for what no route offers."""
    async with open_runtime(settings, served(dsn), usage_flush=USAGE_FLUSH) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _tenants_of_this_test() -> Iterator[None]:
    with made_for_one_test():
        yield


@pytest.fixture
async def acme(runtime: Runtime) -> Caller:
    """A tenant of this test alone, with its admin key."""
    return await make_tenant(runtime)


@pytest.fixture
async def other(runtime: Runtime) -> Caller:
    """Another tenant, which must never be seen."""
    return await make_tenant(runtime)


@pytest.fixture
async def client(app: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    """The API as an admin of `acme` sees it."""
    async with client_of(app, acme.key) as opened:
        yield opened


@pytest.fixture
async def stranger(app: FastAPI, other: Caller) -> AsyncIterator[AsyncClient]:
    """The API as an admin of another tenant sees it."""
    async with client_of(app, other.key) as opened:
        yield opened
