"""The folder in which the processes of one service share their metrics.

Whoever made it holds a lock on it, which the kernel drops with its holder: a pid would say nothing
between containers that share a folder.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from app.errors import ConfigurationError

PREFIX: Final = "kemem-prometheus-"
PREFIX_OF_OWN: Final = "metrics-"
"""In a data folder, which has one service at a time."""


@contextmanager
def shared_metrics(data_folder: Path | None) -> Iterator[Path]:
    """A new folder for the time of the block, in the data folder, or with None in the folder for
    temporary files; what killed services left there is removed.

    Raises:
        ConfigurationError: no folder can be written to; says what to do.

    """
    prefix = PREFIX if data_folder is None else PREFIX_OF_OWN
    try:
        parent = data_folder or Path(tempfile.gettempdir())
        _remove_left(parent, prefix)
        folder, lock = _make(parent, prefix)
    except OSError as error:
        raise ConfigurationError(
            "The processes of the service share their metrics in a folder, and none can be made "
            f"({error.strerror}): let TMPDIR name a folder that can be written to, such as a "
            "tmpfs, or set MEMORY_WORKERS=0."
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _make(parent: Path, prefix: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            # Another service took it for left before it was locked.
            os.close(lock)


def _remove_left(parent: Path, prefix: str) -> None:
    for left in parent.glob(f"{prefix}*"):
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)
