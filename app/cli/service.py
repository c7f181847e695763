"""The service of `kemem serve`: its database opened, announced, served until a signal."""

import socket
from pathlib import Path
from typing import Final

import structlog

from app.cli.first_key import SCOPES, TENANT, ensure_key, key_file
from app.cli.options import data_dir_of, with_kept_key
from app.cli.service_record import recorded
from app.errors import ConfigurationError
from app.factory import Factory
from app.identity.tenants.sign_in_service import SignInService
from app.platform.database.logins import ensure_serving_login
from app.platform.database.migrate import current_revision, refuse_unknown, upgrade
from app.platform.embedded.attachment import open_embedded
from app.platform.embedded.data_folder import open_data_folder
from app.platform.http.health import is_loopback
from app.platform.processes.fork_server import ForkServer
from app.runtime import Runtime, open_runtime, open_usable
from app.serving import (
    address_of,
    begin_children,
    listen,
    run_until_stopped,
    serve,
    stoppable,
)
from app.settings import Settings
from app.version import VERSION

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
