"""The client's wheel in an environment of its own, beside an `app` of its user's."""

import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import kemem
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
# httpx and what it brings along.
DEPENDENCIES = ("httpx", "httpcore", "h11", "anyio", "certifi", "idna", "typing_extensions")

PROGRAM = """
import app
import app.main
import migrations
import kemem

assert app.OWNER == app.main.OWNER == migrations.OWNER == "the user"
assert kemem.__version__ == {version!r}
assert kemem.__file__.startswith({prefix!r}), kemem.__file__
with kemem.Memory("http://127.0.0.1:1", "kem_x", max_retries=0) as memory:
    try:
        memory.search("tea", user_id="ana")
    except kemem.ConnectionFailedError as error:
        print(error.code)
"""

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    # No PYTHONPATH: the checkout must not be found.
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False, env={}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, for setuptools writes into the folder that it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("client", "kemem"):
        ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
    run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", "./client", cwd=folder)
    [built] = (folder / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and httpx, without any use of the network."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = (folder / "lib").glob("python*/site-packages")
    for name in DEPENDENCIES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin)
        source = source.parent if spec.submodule_search_locations else source
        (packages / source.name).symlink_to(source)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    into = ("--python", folder / "bin" / "python")
    run(*pip, *into, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    return folder


def test_wheel_holds_the_client_and_all_of_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        [entry_points] = [name for name in archive.namelist() if "entry_points" in name]
        programs = archive.read(entry_points).decode().split("\n")

    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "kemem").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert names == sources
    # The command `kemem` is the service's.
    assert [line for line in programs if line] == [
        "[console_scripts]",
        "kemem-mcp = kemem.mcp:main",
    ]


def test_client_works_beside_an_app_of_its_user(environment: Path, tmp_path: Path) -> None:
    for package in ("app", "migrations"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text('OWNER = "the user"\n')
    (tmp_path / "app" / "main.py").write_text('OWNER = "the user"\n')
    program = PROGRAM.format(version=kemem.__version__, prefix=str(environment))

    told = run(environment / "bin" / "python", "-W", "error", "-c", program, cwd=tmp_path)

    assert told == "connection_failed\n"
    assert not (environment / "bin" / "kemem").exists()


def test_desktops_start_a_program_that_needs_nothing_else(
    environment: Path, tmp_path: Path
) -> None:
    told = run(environment / "bin" / "kemem-mcp", "--help", cwd=tmp_path)

    assert "whose memory" in told
