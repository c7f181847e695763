"""Folders that PostgreSQL's account can enter, and one cluster to copy from."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_support import copy_of, write

from app.platform.embedded.server import EmbeddedPostgres


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short folder open to all: pytest's own are closed to the account that root lends."""
    yield from _open_folder()


@pytest.fixture(scope="session")
def session_folder() -> Iterator[Path]:
    yield from _open_folder()


def _open_folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="km-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
async def made_once(session_folder: Path) -> Path:
    """A stopped data folder with the note "made" in it, so that initdb runs once."""
    async with EmbeddedPostgres(session_folder / "data") as postgres:
        await write(postgres.dsn, "made")
    return session_folder / "data"


@pytest.fixture
def data_dir(folder: Path, made_once: Path) -> Path:
    """A copy of that folder, for one test."""
    return copy_of(made_once, folder / "data")
