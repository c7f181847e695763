"""The site, built once for the tests of a process."""

from pathlib import Path

import pytest

from scripts.build_guide import build


@pytest.fixture(scope="session")
def guide_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide")
    build(folder / "site", folder / "work")
    return folder / "site"
