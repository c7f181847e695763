"""Commands and clients that are told nothing find the service that runs on this machine.

Which of several is meant, tests/client/test_client_running_services.py proves without any.
"""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_support import embedded, environment
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from app.cli.failures import sentence_for
from app.cli.main import cli
from app.cli.service import recorded
from kemem import ConfigurationError
from kemem.address import find_service
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
PROGRAM = """
from kemem import Memory
with Memory() as memory:
    memory.add("She drinks green tea in the morning.", user_id="ana", infer=False)
    print(memory.base_url, memory.search("What does she drink?", user_id="ana")[0].content)
"""


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """An environment in which no other service runs."""
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def records(variables: dict[str, str]) -> Iterator[Path]:
    """Where this process finds and records services."""
    before = os.environ["XDG_STATE_HOME"]
    os.environ |= variables
    yield Path(variables["XDG_STATE_HOME"], "kemem", "services")
    os.environ["XDG_STATE_HOME"] = before


def program(variables: dict[str, str]) -> str:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment(variables | {"PYTHONPATH": str(ROOT)}),
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout


def demo(variables: dict[str, str]) -> Result:
    kept = environment(variables)
    return CliRunner().invoke(
        cli, ["demo", "--clean"], env={name: kept.get(name) for name in {*os.environ, *variables}}
    )


def folder_with_key(path: Path, key: str) -> Path:
    path.mkdir()
    (path / "key").write_text(key)
    return path


def test_first_start_on_another_address_and_folder_is_found_until_it_is_killed(
    folder: Path, variables: dict[str, str]
) -> None:
    records = Path(variables["XDG_STATE_HOME"], "kemem", "services")
    data_dir = folder / "data"
    with embedded(data_dir, "--host", "0.0.0.0", env=variables) as service:
        # Others reach it: it prints no link that signs a browser in.
        assert f"{service.address}/dashboard\n" in service.greeting
        assert "#code=" not in service.greeting
        told = f"{service.address} She drinks green tea in the morning.\n"
        assert program(variables) == told
        [record] = records.iterdir()
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        assert stat.S_IMODE(records.stat().st_mode) == 0o700
        assert service.key not in record.read_text()
        played = demo(variables)
        assert played.exit_code == 0, played.output

        service.process.kill()
        service.process.wait()
        # Named, for the machine may have a service in its default folder.
        killed = variables | {"MEMORY_DATA_DIR": str(data_dir)}
        with pytest.raises(ConfigurationError, match="not running any more"):
            find_service(None, None, killed)


def test_record_goes_with_its_service_and_replaces_that_of_a_killed_one(
    records: Path, tmp_path: Path
) -> None:
    folder = folder_with_key(tmp_path / "data", "kem_a")
    with recorded("http://127.0.0.1:8001", folder):
        [record] = records.iterdir()
        left = record.read_bytes()
    assert list(records.iterdir()) == []

    record.write_bytes(left)
    with recorded("http://127.0.0.1:8002", folder):
        assert find_service(None, None, os.environ).base_url == "http://127.0.0.1:8002"


def test_command_names_several_services(
    records: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    one, other = (folder_with_key(tmp_path / name, f"kem_{name}") for name in "ab")
    with recorded("http://127.0.0.1:8001", one), recorded("http://127.0.0.1:8002", other):
        sentence, code = sentence_for(demo(variables).exception)

    assert code == 2
    assert "http://127.0.0.1:8001" in sentence
    assert "http://127.0.0.1:8002" in sentence


def test_service_that_cannot_be_recorded_runs_all_the_same(records: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")

    with capture_logs() as logged, recorded("http://127.0.0.1:8001", tmp_path):
        ran = True

    assert ran
    assert [line["event"] for line in logged] == ["service_not_recorded"]
