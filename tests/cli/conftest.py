"""One data folder as a first start makes it; a service on it that the tests of a module share."""

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_support import Service, embedded

from app.cli.first_key import ensure_key
from app.platform.database.logins import ensure_serving_login
from app.platform.database.migrate import upgrade
from app.platform.embedded.attachment import open_embedded
from app.runtime import open_runtime
from tests.support.service import settings_of


def _open_folder() -> Iterator[Path]:
    """A short folder open to all: pytest's own are closed to the account that root lends."""
    path = Path(tempfile.mkdtemp(prefix="km-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    yield from _open_folder()


@pytest.fixture(scope="module")
def module_folder() -> Iterator[Path]:
    yield from _open_folder()


@pytest.fixture(scope="session")
def made_once() -> Iterator[Path]:
    """The data folder of a service that was started and stopped, made without its process."""
    for path in _open_folder():
        asyncio.run(_make(path / "data"))
        yield path / "data"


async def _make(data_dir: Path) -> None:
    async with open_embedded(data_dir, share=False) as urls:
        await upgrade(urls.migration)
        await ensure_serving_login(urls)
        async with open_runtime(settings_of(), urls.serving) as runtime:
            await ensure_key(runtime, data_dir)


@pytest.fixture
def data_dir(folder: Path, made_once: Path) -> Path:
    """A copy of that folder, for one test."""
    return _copy(made_once, folder / "data")


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    """The settings of `service`; a module may have its own."""
    return {}


@pytest.fixture(scope="module")
def service(module_folder: Path, made_once: Path, variables: dict[str, str]) -> Iterator[Service]:
    """A running service that the tests of one module share."""
    with embedded(_copy(made_once, module_folder / "data"), env=variables) as running:
        yield running


def _copy(made: Path, target: Path) -> Path:
    # `cp` keeps owners and modes, and takes 0.1 s.
    subprocess.run(["cp", "-a", "--", made, target], check=True)
    return target
