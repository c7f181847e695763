"""A data folder of version 0.1: a start upgrades it, or says how its contents come along."""

from pathlib import Path

import pytest
from cli_support import embedded, kemem

from app.platform.embedded.attachment import open_embedded
from tests.support.first_version import AS_IN_FIRST_VERSION, as_in_first_version

pytestmark = pytest.mark.slow


async def test_finished_folder_is_upgraded_at_start(data_dir: Path) -> None:
    async with open_embedded(data_dir, share=False) as dsn:
        await as_in_first_version(dsn, "0007", AS_IN_FIRST_VERSION)

    with embedded(data_dir) as service:
        assert service.stop() == 0

    checked = kemem("migrate", "--check", "--data-dir", data_dir, cwd=data_dir.parent)
    assert checked.returncode == 0, checked.stdout + checked.stderr


async def test_unfinished_folder_is_refused_at_start(data_dir: Path) -> None:
    async with open_embedded(data_dir, share=False) as dsn:
        await as_in_first_version(dsn, "0004")

    refused = kemem("serve", "--port", "0", "--data-dir", data_dir, cwd=data_dir.parent)

    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "kemem export" in refused.stderr
    assert "kemem import" in refused.stderr
