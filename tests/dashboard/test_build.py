"""The committed files are what the sources make."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from app.integrations.dashboard.router import PAGE, built_files

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "app" / "integrations" / "dashboard" / "assets"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_file_has_the_hash_of_its_content_in_its_name_and_no_map() -> None:
    assert PAGE in built_files()
    for name in built_files().keys() - {PAGE}:
        stem, _, kind = name.rpartition(".")
        assert kind in {"js", "css", "svg"}, name
        assert re.fullmatch(r".+-[\w-]{8}", stem), name
        assert b"sourceMappingURL" not in (BUILT / name).read_bytes(), name


@pytest.mark.slow
def test_built_files_are_what_the_sources_make(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("Left out: no Node.js with npm is installed.")
    project = tmp_path / "dashboard"
    shutil.copytree(ROOT / "dashboard", project, ignore=shutil.ignore_patterns("node_modules"))
    for command in (["npm", "ci", "--silent"], ["npm", "run", "--silent", "build"]):
        done = subprocess.run(
            command, cwd=project, capture_output=True, text=True, timeout=600, check=False
        )
        if command[1] == "ci" and done.returncode != 0 and "network" in done.stderr:
            pytest.skip(f"Left out: npm reaches no registry: {done.stderr[-200:]}")
        assert done.returncode == 0, done.stdout + done.stderr

    built = contents(tmp_path / "app" / "integrations" / "dashboard" / "assets")

    assert sorted(built) == sorted(built_files())
    assert [name for name, content in built.items() if content != (BUILT / name).read_bytes()] == []
