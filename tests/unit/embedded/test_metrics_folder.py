"""What a killed service leaves of its metrics."""

import os
import subprocess
import sys
from pathlib import Path

from app.platform.embedded.data_folder import DataFolder, metrics_prefix


def test_folders_of_processes_that_were_killed_are_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    kept = tmp_path / f"metrics-{os.getppid()}-a"
    for pid in (ended.pid, os.getpid()):
        (tmp_path / f"metrics-{pid}-a").mkdir()
        (tmp_path / f"metrics-{pid}-a" / "counter_1.db").touch()
    kept.mkdir()

    assert metrics_prefix(DataFolder(tmp_path)) == f"metrics-{os.getpid()}-"

    assert list(tmp_path.iterdir()) == [kept]
