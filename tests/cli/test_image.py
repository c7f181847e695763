"""What the Dockerfile does, in a clean virtual environment: no part of it needs Docker."""

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_support import environment, eventually

from tests.support.databases import served

ROOT = Path(__file__).parents[2]
COMMANDS = re.compile(r"^RUN ((?:.*\\\n)*.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that the first stage makes, from what the build may see."""
    context = tmp_path_factory.mktemp("context")
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line.startswith("!"):
            source, target = ROOT / line[1:], context / line[1:]
            target.parent.mkdir(exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
    made = tmp_path_factory.mktemp("opt") / "kemem"
    build, _serve = (ROOT / "Dockerfile").read_text().split("\n\nFROM ")
    commands = [one for one in COMMANDS.findall(build) if "apt-get" not in one]
    assert any("install_local_model" in one for one in commands)
    for command in commands:
        done = subprocess.run(
            ["/bin/sh", "-c", command.replace("/opt/", f"{made.parent}/")],
            cwd=context,
            env=environment({"EMBEDDED_POSTGRES": "false"}),
            capture_output=True,
            text=True,
            check=False,
        )
        if "No matching distribution" in done.stderr or "NewConnectionError" in done.stderr:
            pytest.skip("the registry of packages cannot be reached")
        assert done.returncode == 0, done.stderr
    return made / "bin"


@pytest.mark.slow
async def test_image_has_all_it_needs_and_no_postgres(image: Path, dsn: str, folder: Path) -> None:
    env = environment({"PATH": f"{image}:{os.defpath}", "DATABASE_URL": served(dsn)})
    env |= {"MEMORY_DATA_DIR": str(folder / "data")}

    def run(*words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(words), cwd=folder, env=env | extra, capture_output=True, text=True, check=False
        )

    def play() -> None:
        assert not (image / "pip").exists()
        alone = run("kemem", "serve", "--port", "0", DATABASE_URL="")
        assert alone.returncode == 2
        assert "EMBEDDED_POSTGRES=true" in alone.stderr
        first = run("kemem", "keys", "first")
        assert first.returncode == 0, first.stderr
        assert first.stdout.startswith("kem_")
        alive = folder / "worker-alive"
        worker = subprocess.Popen(
            ["kemem", "worker", "--alive-file", str(alive)], cwd=folder, env=env,
            executable=str(image / "kemem"), stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            eventually(alive.exists)
        finally:
            worker.terminate()
            assert worker.wait() == 0

    await asyncio.to_thread(play)
