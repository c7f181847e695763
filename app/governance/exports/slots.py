"""How many exports run at a time in a process, and how long one waits for its reader: each holds
a connection of the pool.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from app.governance.exports.errors import ExportsBusyError

MOST: Final = 2

STALLED_SECONDS: Final = 60.0
"""How long a reader may take nothing of what is sent. It holds a transaction, which keeps
PostgreSQL from cleaning up, and a slot for which others wait; slow networks and disks pause for
seconds."""


class ExportSlots:
    """Counts those that run, one of a tenant: nobody can hold them all. One per process.

    Args:
        connections: how many the pool has; all but one may be an export's.
        patience: how long a reader may take nothing, in seconds.

    """

    def __init__(self, connections: int, *, patience: float = STALLED_SECONDS) -> None:
        self.patience = patience
        self._free = min(MOST, max(1, connections - 1))
        self._tenants: set[str] = set()

    @contextmanager
    def taken(self, tenant_id: str) -> Iterator[None]:
        """One more runs inside.

        Raises:
            ExportsBusyError: the tenant has one already, or there are as many as there may be.

        """
        if not self._free or tenant_id in self._tenants:
            raise ExportsBusyError
        self._free -= 1
        self._tenants.add(tenant_id)
        try:
            yield
        finally:
            self._free += 1
            self._tenants.discard(tenant_id)
