"""kemem serve"""

import asyncio
import os
import socket
import sys
import tempfile
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import structlog
import typer
import uvloop

from app.cli.first_key import ensure_key, key_file
from app.cli.opening import DataDirOption, data_dir_of, settings_with, with_kept_key
from app.errors import ConfigurationError
from app.platform.database.migrate import current_revision, refuse_unknown, upgrade
from app.platform.embedded.attachment import open_embedded
from app.platform.embedded.data_folder import FolderLock, open_data_folder
from app.platform.http.health import is_loopback
from app.platform.observability.logging import configure_logging
from app.runtime import open_runtime
from app.serving import address_of, listen, serve, serve_many, stoppable
from app.settings import Settings
from app.version import VERSION

log = structlog.get_logger()


class LogFormat(StrEnum):
    """How log lines look."""

    json = "json"
    text = "text"


def serve_command(
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; MEMORY_HOST, else 127.0.0.1, when left out. Every "
            "request needs a key, so any is safe to choose.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help="Port; MEMORY_PORT, else 8000, when left out. 0 takes a free one.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDirOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes; more than one needs DATABASE_URL. MEMORY_WORKERS, else 1, when "
            "left out.",
            show_default=False,
        ),
    ] = None,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(
            help="Form of the log on standard error; text in a terminal and json elsewhere, "
            "when left out.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run the service; without DATABASE_URL with a PostgreSQL of its own.

    The embedded PostgreSQL, its schema and a first key are made on the first start. Stop with
    Ctrl-C or SIGTERM: running requests are finished first, and the data stays.
    """
    settings = settings_with(host=host, port=port, data_dir=data_dir, workers=workers)
    pretty = sys.stderr.isatty() if log_format is None else log_format is LogFormat.text
    configure_logging(settings.log_level, pretty=pretty)
    if settings.embedded:
        # Before the port: whoever starts twice should hear of the folder.
        _refuse_held(data_dir_of(settings))
    with listen(settings.host, settings.port) as listener:
        if settings.metrics_token is None and not is_loopback(listener.getsockname()[:2]):
            log.warning(
                "metrics_closed",
                remedy="set MEMORY_METRICS_TOKEN: without it /metrics answers on a loopback "
                "address alone",
            )
        if settings.workers > 1:
            _serve_many(settings, listener, pretty=pretty)
        else:
            _run_one(settings, listener)


DEFAULT_USER: Final = "default"
"""Whom a request to the embedded service is about that names nobody."""


def _refuse_held(data_dir: Path) -> None:
    lock = FolderLock(open_data_folder(data_dir))
    lock.acquire()
    lock.release()


def _run_one(settings: Settings, listener: socket.socket) -> None:
    work = _serve_embedded if settings.embedded else _serve_external
    with (
        # Cancelled means: stopped by a signal, in good order.
        suppress(asyncio.CancelledError),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(work(settings, listener))


async def _serve_embedded(settings: Settings, listener: socket.socket) -> None:
    data_dir = data_dir_of(settings)
    settings = settings.model_copy(
        update={"default_user_id": settings.default_user_id or DEFAULT_USER}
    )
    async with stoppable() as stopping, open_embedded(data_dir, share=False) as dsn:
        refuse_unknown(await current_revision(dsn))
        await upgrade(dsn)
        settings = with_kept_key(settings)
        async with open_runtime(settings, dsn) as runtime:
            key, note = await ensure_key(runtime, data_dir)
            text = embedded_greeting(address_of(listener), key, data_dir, note)
            await serve(runtime, dsn, listener, stopping, lambda: print(text, flush=True))


async def _serve_external(settings: Settings, listener: socket.socket) -> None:
    text = greeting(address_of(listener))
    dsn = _url(settings)
    async with stoppable() as stopping, open_runtime(settings, dsn) as runtime:
        await serve(runtime, dsn, listener, stopping, lambda: print(text, flush=True))


def _serve_many(settings: Settings, listener: socket.socket, *, pretty: bool) -> None:
    # Opened once here, so that what cannot work is said once and in a sentence.
    asyncio.run(_try(settings))
    print(greeting(address_of(listener)), flush=True)
    with tempfile.TemporaryDirectory(prefix="kemem-metrics-") as folder:
        # Read when a worker imports the Prometheus client: /metrics answers for all of them.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        serve_many(settings, listener, pretty=pretty)


async def _try(settings: Settings) -> None:
    async with open_runtime(settings, _url(settings)):
        pass


def _url(settings: Settings) -> str:
    """Raises ConfigurationError."""
    if settings.database_url is None:
        raise ConfigurationError("DATABASE_URL is not set.")
    return settings.database_url.get_secret_value()


def greeting(address: str) -> str:
    """What a service with a database of its own says when it is ready."""
    return f"""
KeMem {VERSION} is ready.

  Address  {address}
  Docs     {address}/docs

Make a tenant and its key with `kemem tenants create NAME`.
"""


def embedded_greeting(address: str, key: str, data_dir: Path, note: str | None) -> str:
    """What the embedded service says when it is ready; the block works when pasted."""
    remark = f"\n{note}\n" if note else ""
    return f"""
KeMem {VERSION} is ready.

  Address  {address}
  Docs     {address}/docs
  Key      {key}
  Data     {data_dir} (the key is in {key_file(data_dir)})
{remark}
Paste this into another terminal to save a memory and find it again:

{curl_block(address, key)}

Stop with Ctrl-C; the data stays.
"""


def curl_block(address: str, key: str) -> str:
    """Two requests as a shell understands them."""
    return f"""export KEMEM_URL={address} KEMEM_API_KEY={key}
curl -sS $KEMEM_URL/v1/memories -H "Authorization: Bearer $KEMEM_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{{"messages": "She drinks green tea in the morning.", "user_id": "ana", "infer": false}}'
echo
curl -sS $KEMEM_URL/v1/memories/search -H "Authorization: Bearer $KEMEM_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{{"query": "What does she drink?", "user_id": "ana", "limit": 3}}'
echo"""
