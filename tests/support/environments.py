"""Packages of other products in environments of their own, kept below `build/environments`.

Their pins would clash with ours, so a test starts them as processes: `python(name, …)` and
`node(name, …)` install what is asked for once and leave it there. An environment whose
requirements changed is made anew.
Without a registry the test is skipped; any other failure of an installation fails it.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "environments"
INSTALL_SECONDS = 900

# pip itself would be answered by a local folder of wheels too.
_REACH_INDEX = """
import os, urllib.request
from pip._internal.models.index import PyPI
index = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
urllib.request.urlopen(index + "/pip/", timeout=60)
"""


def python(name: str, *requirements: str, for_newer: Sequence[str] = ()) -> Path:
    """The interpreter of a virtual environment that has exactly `requirements`.

    Args:
        name: of the folder; one for each set of requirements.
        requirements: pinned, such as `mem0ai==2.2.1`.
        for_newer: packages that ask for a newer Python than they need; what they require stands in
            `requirements`.

    """
    _pinned([*requirements, *for_newer], "==")
    folder = FOLDER / name
    interpreter = folder / "bin" / "python"

    def install() -> None:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(interpreter), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        reach = [sys.executable, "-c", _REACH_INDEX]
        _install([*pip, *requirements], reach)
        if for_newer:
            _install([*pip, "--no-deps", "--ignore-requires-python", *for_newer], reach)

    _ensure(folder, [*requirements, *for_newer], install)
    return interpreter


def node(name: str, *packages: str) -> Path:
    """The folder whose `node_modules` has `packages`; scripts that import them lie in it.

    Args:
        name: of the folder; one for each set of packages.
        packages: pinned, such as `mem0ai@3.3.1`.

    """
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, and this test runs a package from its registry")
    _pinned(packages, "@")
    folder = FOLDER / name

    def install() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"name": "environment", "private": True}))
        where = ["--prefix", str(folder)]
        _install(
            [npm, "install", "--silent", "--no-audit", "--no-fund", *where, *packages],
            [npm, "view", "npm", "version"],
        )

    _ensure(folder, packages, install)
    return folder


def quiet_environment(**variables: str) -> dict[str, str]:
    """Variables for a package's process: ours left out, its telemetry off."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_", "MEM0_", "OPENAI_", "DATABASE_", "PYTHON", "KEMEM_"))
    }
    off = {"MEM0_TELEMETRY": "False", "CREWAI_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}
    return kept | off | {"OTEL_SDK_DISABLED": "true"} | variables


def _pinned(requirements: Sequence[str], separator: str) -> None:
    loose = [one for one in requirements if separator not in one[1:]]
    if loose or not requirements:
        raise ValueError(f"pin a version of each requirement: {loose}")


def _ensure(folder: Path, requirements: Sequence[str], install: Callable[[], None]) -> None:
    made = folder / ".installed"
    wanted = "\n".join(
        [*sorted(requirements), f"{sys.version_info.major}.{sys.version_info.minor}"]
    )
    with _alone(folder):
        if not made.is_file() or made.read_text() != wanted:
            install()
            made.write_text(wanted)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else installs into `folder` meanwhile: tests run in several processes."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(command: list[str], reach_registry: list[str]) -> None:
    """Skips the test where `reach_registry` fails too."""
    done = _run(command, check=False)
    if done.returncode == 0:
        return
    if _run(reach_registry, check=False).returncode != 0:
        pytest.skip("the package registry cannot be reached, and this test runs a package from it")
    pytest.fail(f"{' '.join(command)}\n{done.stderr[-2000:]}")


def _run(command: list[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=check
    )
