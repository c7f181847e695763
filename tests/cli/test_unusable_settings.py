"""Settings that cannot be meant: judged before anything is made for them."""

import pytest
from cli_support import kemem


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("MEMORY_EXTRACTION_MODEL", "nonsense"),
        ("MEMORY_SCOPE_WEIGHTS", "nonsense"),
    ],
)
def test_unusable_setting_makes_no_database(tmp_path, setting, value):
    data_dir = tmp_path / "data"

    done = kemem("serve", "--data-dir", data_dir, "--port", "0", cwd=tmp_path, env={setting: value})

    assert done.returncode == 2
    assert done.stderr.startswith(f"kemem: {setting}")
    assert [file.name for file in data_dir.iterdir()] == ["kemem.lock"]
