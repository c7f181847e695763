"""The record of a running embedded service, by which clients on this machine find it."""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from kemem.running_services import recorded_services, records_folder

log = structlog.get_logger()


@contextmanager
def recorded(address: str, data_dir: Path) -> Iterator[None]:
    """Record for the time of the block that the service of `data_dir` answers at `address`.

    The caller holds the data folder. A service that cannot be recorded runs all the same:
    clients then need its address.
    """
    try:
        path = _path_of(data_dir)
        file = _write(path, address, data_dir)
    except (OSError, RuntimeError) as error:
        log.warning(
            "service_not_recorded",
            error=type(error).__name__,
            remedy="clients on this machine need KEMEM_URL",
        )
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(file)


def _path_of(data_dir: Path) -> Path:
    folder = records_folder(os.environ)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise PermissionError("the folder of records belongs to another user")
    _remove_abandoned(folder)
    return folder / _name_of(data_dir)


def _name_of(data_dir: Path) -> str:
    """One for each data folder: a service replaces what its killed predecessor left."""
    return f"{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:32]}.json"


def _remove_abandoned(folder: Path) -> None:
    """Remove leftovers of data folders that are gone: nobody starts a service on those."""
    for record in recorded_services(os.environ):
        if not record.is_running and not record.data_dir.exists():
            (folder / _name_of(record.data_dir)).unlink(missing_ok=True)


def _write(path: Path, address: str, data_dir: Path) -> int:
    """Replace the record, whole and locked; the descriptor that holds the lock."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        told = {"base_url": address, "data_dir": str(data_dir), "pid": os.getpid()}
        os.write(file, json.dumps(told).encode())
        draft.replace(path)
    except BaseException:
        os.close(file)
        raise
    return file
