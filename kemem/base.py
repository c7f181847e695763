"""What `Memory` and `AsyncMemory` have in common: everything but the sending."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

import os
from collections.abc import Sequence
from typing import Any, TypeVar

from kemem.address import Service, find_service
from kemem.calls import Call
from kemem.exchange import Exchange, Patience
from kemem.reading import Listing

Result = TypeVar("Result")
Rows = TypeVar("Rows", bound=Listing[Any])

TIMEOUT_SECONDS = 120.0
"""Longer than the minute that `extract(wait=True)` and a model may take."""
MAX_RETRIES = 3
WAIT_SECONDS = 300.0


class BaseMemory:
    """Where the service is, and how patient the client is with it."""

    def __init__(
        self, base_url: str | None, api_key: str | None, timeout: float, max_retries: int
    ) -> None:
        self._service: Service = find_service(base_url, api_key, os.environ)
        self._patience = Patience(timeout, max_retries)

    @property
    def base_url(self) -> str:
        """The address of the service, without a slash at its end."""
        return self._service.base_url

    def __repr__(self) -> str:
        return f"<kemem.{type(self).__name__} {self.base_url}>"

    @property
    def _uses_environment(self) -> bool:
        # A proxy for the world cannot find what runs here, and should not see its key.
        return not self._service.is_local

    def _exchange(self, call: Call[Result]) -> Exchange[Result]:
        return Exchange(call, self._service, self._patience)


def listing(kind: type[Rows], rows: Sequence[Any]) -> Rows:
    """Rows of several pages as one list."""
    return kind(results=tuple(rows), raw={"items": [row.raw for row in rows]})


def one_session(session_id: str | None, run_id: str | None) -> str | None:
    """The session that two names mean.

    Raises:
        ValueError: they mean different ones.

    """
    if session_id is not None and run_id is not None and session_id != run_id:
        raise ValueError("run_id is another name for session_id: give one of them")
    return session_id if run_id is None else run_id
