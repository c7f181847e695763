"""The service of `kemem serve`: its database opened, announced, served until a signal; and the
record of a running embedded service, by which clients on this machine find it.
"""

import fcntl
import hashlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog

from app.builders.factory import Factory
from app.cli.first_key import SCOPES, TENANT, ensure_key, key_file
from app.cli.options import data_dir_of, with_kept_key
from app.cli.serving import (
    address_of,
    begin_children,
    listen,
    run_until_stopped,
    serve,
    stoppable,
)
from app.errors import ConfigurationError
from app.identity.tenants.sign_in_service import SignInService
from app.platform.database.logins import ensure_serving_login
from app.platform.database.migrate import current_revision, refuse_unknown, upgrade
from app.platform.embedded.attachment import open_embedded
from app.platform.embedded.data_folder import open_data_folder
from app.platform.http.health import is_loopback
from app.platform.processes.fork_server import ForkServer
from app.platform.version import VERSION
from app.runtime import Runtime, open_runtime, open_usable
from app.settings import Settings
from kemem.running_services import recorded_services, records_folder

log = structlog.get_logger()

DEFAULT_USER: Final = "default"
"""Whom a request to the embedded service is about that names nobody."""


def run(settings: Settings) -> None:
    """Listen, and answer requests and work off jobs until a signal.

    Raises:
        ConfigurationError: it cannot run so; says what to do.

    """
    with listen(settings.host, settings.port) as listener:
        if settings.metrics_token is None and not is_loopback(listener.getsockname()[:2]):
            log.warning(
                "metrics_closed",
                remedy="set MEMORY_METRICS_TOKEN: without it /metrics answers on a loopback "
                "address alone",
            )
        children = begin_children(settings, _child_settings, listener)
        try:
            work = _serve_embedded if settings.embedded else _serve_external
            run_until_stopped(work(settings, listener, children))
        finally:
            if children is not None:
                children.close()


def _child_settings(settings: Settings) -> Settings:
    """Settings of another process of the service, which begins when the first is open."""
    return _embedded_settings(settings) if settings.embedded else settings


def _embedded_settings(settings: Settings) -> Settings:
    user = settings.default_user_id or DEFAULT_USER
    return with_kept_key(settings.model_copy(update={"default_user_id": user}))


async def _serve_embedded(
    settings: Settings, listener: socket.socket, children: ForkServer | None
) -> None:
    data_dir = data_dir_of(settings)
    async with (
        stoppable() as stopping,
        open_usable(settings) as providers,
        open_embedded(data_dir, share=False) as urls,
    ):
        dsn = urls.serving
        refuse_unknown(await current_revision(urls.migration))
        await upgrade(urls.migration)
        await ensure_serving_login(urls)
        settings = _embedded_settings(settings)
        async with open_runtime(settings, dsn, providers=providers) as runtime:
            key, note = await ensure_key(runtime, data_dir)
            page = await _dashboard_of(runtime, listener)
            address = address_of(listener)
            text = embedded_greeting(address, key, data_dir, note, page=page)
            with recorded(address, open_data_folder(data_dir).root):
                await serve(
                    runtime, dsn, listener, stopping, lambda: print(text, flush=True), children
                )


async def _dashboard_of(runtime: Runtime, listener: socket.socket) -> str:
    """The address of the dashboard; on a loopback address one that signs a browser in, once."""
    page = f"{address_of(listener)}/dashboard"
    if not is_loopback(listener.getsockname()[:2]):
        return page
    code = await Factory(runtime).get(SignInService).add_code(TENANT, SCOPES)
    return f"{page}#code={code}"


async def _serve_external(
    settings: Settings, listener: socket.socket, children: ForkServer | None
) -> None:
    text = greeting(address_of(listener))
    dsn = _url(settings)
    async with stoppable() as stopping, open_runtime(settings, dsn) as runtime:
        await serve(runtime, dsn, listener, stopping, lambda: print(text, flush=True), children)


def _url(settings: Settings) -> str:
    """Raises ConfigurationError."""
    if settings.database_url is None:
        raise ConfigurationError("DATABASE_URL is not set.")
    return settings.database_url.get_secret_value()


def greeting(address: str) -> str:
    """What a service with a database of its own says when it is ready."""
    return f"""
KeMem {VERSION} is ready.

  Address    {address}
  Docs       {address}/docs
  Dashboard  {address}/dashboard

Make a tenant and its key with `kemem tenants create NAME`.
"""


def embedded_greeting(
    address: str, key: str, data_dir: Path, note: str | None, *, page: str
) -> str:
    """What the embedded service says when it is ready; the block works when pasted."""
    remark = f"\n{note}\n" if note else ""
    return f"""
KeMem {VERSION} is ready.

  Address    {address}
  Docs       {address}/docs
  Dashboard  {page}
  Key        {key}
  Data       {data_dir} (the key is in {key_file(data_dir)})
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
