"""The services that run on this machine, as `kemem serve` records them.

A record says where a service answers and in which data folder its key is; it holds no key. A
service holds a lock on its record while it lives, and the kernel drops the lock with the process:
a record without one is the leftover of a service that was killed.
"""

import json
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

STATE_VARIABLE = "XDG_STATE_HOME"
_LARGEST_RECORD = 65_536
# Nor does a named pipe make anybody wait.
_WITHOUT_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class RunningService:
    """A service of this user that runs with a PostgreSQL of its own."""

    base_url: str
    data_dir: Path
    pid: int
    is_running: bool
    """False for the leftover of a service that was killed."""

    def __str__(self) -> str:
        return f"{self.base_url} (data folder {self.data_dir})"


def records_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the records of this user's services."""
    chosen = Path(environ.get(STATE_VARIABLE, ""))
    if chosen.is_absolute():
        return chosen / "kemem" / "services"
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/run/kemem/services")
    return Path.home() / ".local/state/kemem/services"


def recorded_services(environ: Mapping[str, str]) -> list[RunningService]:
    """The services that run, and leftovers of killed ones; none of another user."""
    try:
        files = sorted(records_folder(environ).glob("*.json"))
    except (OSError, RuntimeError):
        # Without a home there is no folder.
        return []
    return [record for file in files if (record := _read(file)) is not None]


def is_mine(file: int) -> bool:
    """Whether the open file is a plain one of this user."""
    status = os.fstat(file)
    return stat.S_ISREG(status.st_mode) and (
        sys.platform == "win32" or status.st_uid == os.geteuid()
    )


def _read(path: Path) -> RunningService | None:
    try:
        file = os.open(path, os.O_RDONLY | _WITHOUT_LINKS)
    except OSError:
        return None
    try:
        if not is_mine(file):
            return None
        told = json.loads(os.read(file, _LARGEST_RECORD))
        return RunningService(
            str(told["base_url"]), Path(told["data_dir"]), int(told["pid"]), _is_locked(file)
        )
    except (OSError, ValueError, TypeError, LookupError):
        return None
    finally:
        os.close(file)


def _is_locked(file: int) -> bool:
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
