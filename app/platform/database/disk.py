"""Room that is kept free on the disk of the embedded database.

A PostgreSQL that cannot write its log stops, and then nothing can be read either. So what would
store something is refused before that, while reading and deleting go on.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.platform.database.failures import DatabaseDiskFullError


@dataclass(frozen=True, slots=True)
class DiskReserve:
    """How much stays free.

    Args:
        free_bytes: asks the file system, which takes microseconds.
        reserve_bytes: with less than this nothing is stored; 0 never refuses.

    """

    free_bytes: Callable[[], int]
    reserve_bytes: int

    @property
    def is_touched(self) -> bool:
        """Whether less is free than should be."""
        return self.reserve_bytes > 0 and self.free_bytes() < self.reserve_bytes

    def refuse_touched(self) -> None:
        """Raises DatabaseDiskFullError."""
        if self.is_touched:
            raise DatabaseDiskFullError
