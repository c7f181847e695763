"""Settings that cannot be meant: judged before anything is made for them."""

import pytest
from typer.testing import CliRunner

from app.cli.failures import sentence_for
from app.cli.main import cli


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("MEMORY_EXTRACTION_MODEL", "nonsense"),
        ("MEMORY_SCOPE_WEIGHTS", "nonsense"),
    ],
)
def test_unusable_setting_makes_no_database(tmp_path, setting, value):
    data_dir = tmp_path / "data"

    arguments = ["serve", "--data-dir", str(data_dir), "--port", "0"]
    sentence, code = sentence_for(
        CliRunner().invoke(cli, arguments, env={setting: value}).exception
    )

    assert code == 2
    assert sentence.startswith(setting)
    assert [file.name for file in data_dir.iterdir()] == ["kemem.lock"]
