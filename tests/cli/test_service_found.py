"""Commands and clients that are told nothing find the service that runs on this machine."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import embedded, environment, kemem

from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
PROGRAM = """
from kemem import Memory
with Memory() as memory:
    memory.add("She drinks green tea in the morning.", user_id="ana", infer=False)
    print(memory.base_url, memory.search("What does she drink?", user_id="ana")[0].content)
"""


@pytest.fixture
def variables(folder: Path) -> dict[str, str]:
    """An environment in which no other service runs."""
    return {"XDG_STATE_HOME": str(folder / "state")}


def program(variables: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment(variables | {"PYTHONPATH": str(ROOT)} | more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_service_on_another_port_and_folder_is_found(data_dir, variables):
    records = Path(variables["XDG_STATE_HOME"], "kemem", "services")
    with embedded(data_dir, env=variables) as service:
        done = program(variables)
        assert done.stdout == f"{service.address} She drinks green tea in the morning.\n"
        [record] = records.iterdir()
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        assert stat.S_IMODE(records.stat().st_mode) == 0o700
        assert service.key not in record.read_text()
        told = kemem("demo", "--clean", cwd=data_dir.parent, env=variables)
        assert told.returncode == 0, told.stderr

        assert service.stop() == 0
        assert list(records.iterdir()) == []


def test_several_services_are_named_and_each_can_be_meant(data_dir, made_once, variables):
    second = data_dir.with_name("second")
    subprocess.run(["cp", "-a", "--", made_once, second], check=True)
    with embedded(data_dir, env=variables) as one, embedded(second, env=variables) as other:
        done = program(variables)
        assert done.returncode != 0
        assert one.address in done.stderr
        assert other.address in done.stderr
        told = kemem("demo", "--clean", cwd=data_dir.parent, env=variables)
        assert told.returncode == 2
        assert other.address in told.stderr
        assert program(variables, KEMEM_URL=other.address).stdout.startswith(other.address)
        meant = program(variables, MEMORY_DATA_DIR=str(data_dir))
        assert meant.stdout.startswith(one.address)


def test_killed_service_is_told_from_a_running_one(data_dir, variables):
    with embedded(data_dir, env=variables) as service:
        service.process.kill()
        service.process.wait()
        done = program(variables)
    assert "not running any more" in done.stderr
    with embedded(data_dir, env=variables) as again:
        assert program(variables).stdout.startswith(again.address)


def test_service_that_cannot_be_recorded_runs_all_the_same(data_dir, folder):
    (folder / "state").write_text("a file")
    with embedded(data_dir, env={"XDG_STATE_HOME": str(folder / "state")}) as service:
        assert service.is_ready()
        assert service.log("service_not_recorded")
