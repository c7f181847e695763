"""KeMem with everything switched on: `python -m benchmarks.service [--no-use]`."""

import os
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime

from typing_extensions import override

from app.main import create_app
from app.memory.memories.uses import MemoryUse
from app.platform.observability.logging import configure_logging
from app.runtime import Runtime, open_runtime, warmed_up
from app.settings import Settings
from benchmarks.processes import DSN
from benchmarks.serving import serve


class NoUse(MemoryUse):
    """Counts nothing, to see what counting costs."""

    @override
    def note(self, tenant_id: str, memory_ids: Iterable[str], at: datetime) -> None:
        pass


@asynccontextmanager
async def opened(dsn: str, *, use: bool) -> AsyncIterator[Runtime]:
    """A runtime as `kemem serve` opens it; without `use`, uses are not counted."""
    async with open_runtime(Settings(_env_file=None), dsn) as runtime, warmed_up():
        # No setting switches it off.
        yield runtime if use else replace(runtime, memory_use=NoUse(runtime.database))


def main(*flags: str) -> None:
    configure_logging("info")
    serve(create_app(opened(os.environ[DSN], use="--no-use" not in flags)))


if __name__ == "__main__":
    main(*sys.argv[1:])
