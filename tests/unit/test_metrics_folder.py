"""The folder of shared metrics: one for each service, and nothing left of killed ones."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import ConfigurationError
from app.platform.observability.metrics_folder import PREFIX, PREFIX_OF_OWN, shared_metrics

HOLD = """
import sys, tempfile
from pathlib import Path
from app.platform.observability.metrics_folder import shared_metrics
tempfile.tempdir = sys.argv[1]
with shared_metrics(None) as folder:
    (folder / "counter_1.db").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    before = tempfile.tempdir
    tempfile.tempdir = str(tmp_path)
    yield tmp_path
    tempfile.tempdir = before


def start(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    """A service that holds a folder."""
    service = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(temporary)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert service.stdout is not None
    return service, Path(service.stdout.readline().strip())


def test_folder_of_a_running_service_stays_and_that_of_a_killed_one_goes(temporary: Path) -> None:
    running, its = start(temporary)
    killed, left = start(temporary)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert (left / "counter_1.db").exists()

    with shared_metrics(None) as folder:
        assert folder.name.startswith(PREFIX)
        assert set(temporary.iterdir()) == {its, folder}

    assert (its / "counter_1.db").exists()
    running.communicate("")
    assert list(temporary.iterdir()) == []


def test_what_is_no_folder_of_ours_stays(temporary: Path) -> None:
    target = temporary / "elsewhere"
    target.mkdir()
    link, file = temporary / f"{PREFIX}link", temporary / f"{PREFIX}file"
    link.symlink_to(target)
    file.touch()

    with shared_metrics(None):
        assert link.is_symlink()
        assert file.exists()
        assert target.exists()


def test_data_folder_has_its_own(tmp_path: Path) -> None:
    left = tmp_path / f"{PREFIX_OF_OWN}1-of-the-release-before"
    left.mkdir()

    with shared_metrics(tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]

    assert list(tmp_path.iterdir()) == []


def test_missing_folder_is_named_in_a_sentence(temporary: Path) -> None:
    tempfile.tempdir = str(temporary / "nowhere")

    with pytest.raises(ConfigurationError, match=r"TMPDIR.*MEMORY_WORKERS=0"), shared_metrics(None):
        pass
