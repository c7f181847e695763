"""kemem serve: its options, and what must be settled before the service is imported."""

import gc
import os
import sys
from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from app.cli.options import DataDirOption, data_dir_of, settings_with
from app.platform.embedded.data_folder import (
    DataFolder,
    FolderLock,
    open_data_folder,
)
from app.platform.observability.logging import configure_logging
from app.platform.observability.metrics_folder import shared_metrics
from app.settings import Settings


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
            help="Processes that answer requests; 0 does background work in the one that answers, "
            "for small machines. MEMORY_WORKERS, else 1, when left out.",
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
    own = open_data_folder(data_dir_of(settings)) if settings.embedded else None
    if own is not None:
        # Before the port: whoever starts twice should hear of the folder.
        _refuse_held(own)
    if not settings.several_processes:
        _run(settings)
        return
    with shared_metrics(None if own is None else own.root) as folder:
        # Read when the Prometheus client is imported: /metrics answers for all processes.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        _run(settings)


def _run(settings: Settings) -> None:
    # As in `app/main.py`: what is imported is no garbage.
    gc.disable()
    service = import_module("app.cli.service")
    gc.freeze()
    gc.enable()
    try:
        service.run(settings)
    finally:
        # Its folder is removed; what starts later in this process must not look for it.
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)


def _refuse_held(folder: DataFolder) -> None:
    lock = FolderLock(folder)
    lock.acquire()
    lock.release()
