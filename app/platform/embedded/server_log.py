"""The file that PostgreSQL's programs write to, bounded, and quoted when they fail."""

import os
from pathlib import Path
from typing import IO

_ROTATE_BYTES = 10 * 1024 * 1024
_QUOTED_BYTES = 8 * 1024
_QUOTED_LINES = 15


class ServerLog:
    """One log file and its predecessor; the programs get a descriptor, not a name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin = 0

    def open(self) -> IO[bytes]:
        """Open for appending and remember where this run begins.

        A full file is put aside first, and the one put aside before is dropped.
        """
        if self.path.exists() and self.path.stat().st_size > _ROTATE_BYTES:
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        file = os.fdopen(os.open(self.path, flags, 0o600), "ab")
        self._begin = os.fstat(file.fileno()).st_size
        return file

    def last_lines(self) -> str:
        """The end of what was written since the last `open`."""
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._begin, size - _QUOTED_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_QUOTED_LINES:]) or "(nothing was logged)"
