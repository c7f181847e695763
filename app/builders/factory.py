"""Builds the services of a process: each once, at its first use, out of what the runtime holds.

Routers and the worker ask for a service by its class and know nothing of the runtime, so every
layer can be imported without the ones above it.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from app.builders.integrations import INTEGRATIONS
from app.builders.jobs import JOBS
from app.builders.services import SERVICES, Builder
from app.runtime import Runtime

Service = TypeVar("Service")

_BUILDERS: Final[Mapping[type[Any], Builder]] = {**SERVICES, **INTEGRATIONS, **JOBS}


class Factory:
    """The services of one runtime, by their class."""

    def __init__(self, runtime: Runtime, built: Mapping[type[Any], Any] | None = None) -> None:
        """Build out of `runtime`; those in `built` are there already."""
        self.runtime = runtime
        self._built: dict[type[Any], Any] = dict(built or {})

    def get(self, kind: type[Service]) -> Service:
        """The service of this class; the same object every time.

        Raises:
            KeyError: nothing here builds such a service.

        """
        built: Service | None = self._built.get(kind)
        if built is None:
            built = self._built[kind] = _BUILDERS[kind](self, self.runtime)
        return built
