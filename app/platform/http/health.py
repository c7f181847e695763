"""/livez, /readyz and /metrics: for probes and scrapers, without a key of a tenant."""

import asyncio
import hmac
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.responses import Response

from app.errors import UnauthenticatedError
from app.platform.database.engine import Database
from app.platform.database.failures import (
    DatabaseDiskFullError,
    DatabaseReadOnlyError,
    DatabaseUnavailableError,
)
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.observability.metrics import exposition

router = APIRouter(tags=["operations"])
metrics_bearer = HTTPBearer(
    auto_error=False, scheme_name="metrics", description="MEMORY_METRICS_TOKEN."
)


_PROXIED: Final = {"forwarded", "via", "x-forwarded-for"}
"""Headers that say that a request came through a proxy, which may be on this machine."""


@dataclass(frozen=True, slots=True)
class Probe:
    """State for probes and scrapers.

    Args:
        metrics_token: the token that a scraper must send; None for no token, and then only
            connections to a loopback address are answered, and none that a proxy passed on.
        metrics_folder: shared with the other processes of the service, when there are any.

    """

    database: Database
    embedding_model: str
    memory_enabled: bool
    metrics_token: str | None
    metrics_folder: Path | None


ProbeDep = Annotated[Probe, provided(Probe)]


class Health(BaseModel):
    status: Literal["ok"] = "ok"


class Readiness(Health):
    embedding_model: str
    memory_enabled: bool
    writes: Literal["ok", "database_read_only", "database_disk_full"]
    """Why nothing can be written; what reads is answered, so this is no reason to stop asking."""


class UnknownMetricsTokenError(UnauthenticatedError):
    code = "unknown_metrics_token"
    title = "Metrics need their token"

    def __init__(self) -> None:
        super().__init__(
            "Send MEMORY_METRICS_TOKEN as `Authorization: Bearer <token>`. While it is not set, "
            "metrics are shown on a loopback address alone, and not through a proxy."
        )


@router.get("/livez")
async def livez() -> Health:
    """Whether the process answers; never queries the database."""
    return Health()


@router.get("/readyz", responses=responses_for(DatabaseUnavailableError))
async def readyz(probe: ProbeDep) -> Readiness:
    """Whether requests can be served, and whether they can write: queries the database."""
    writes: Literal["ok", "database_read_only", "database_disk_full"] = "ok"
    try:
        await probe.database.refuse_unwritable()
    except DatabaseReadOnlyError:
        writes = "database_read_only"
    except DatabaseDiskFullError:
        writes = "database_disk_full"
    return Readiness(
        embedding_model=probe.embedding_model,
        memory_enabled=probe.memory_enabled,
        writes=writes,
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {}}},
        **responses_for(UnknownMetricsTokenError),
    },
)
async def metrics(
    request: Request,
    probe: ProbeDep,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(metrics_bearer)],
) -> Response:
    """Counters and histograms for Prometheus; no ids and no content.

    Raises UnknownMetricsTokenError.
    """
    token = probe.metrics_token
    if token is not None:
        given = credentials.credentials if credentials else ""
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise UnknownMetricsTokenError
    elif not is_local(request):
        raise UnknownMetricsTokenError
    return Response(
        await asyncio.to_thread(exposition, probe.metrics_folder), media_type=CONTENT_TYPE_LATEST
    )


def is_local(request: Request) -> bool:
    """Whether the request comes from this machine, and not through a proxy that says it is one."""
    server = request.scope.get("server")
    return is_loopback(server) and _PROXIED.isdisjoint(request.headers.keys())


def is_loopback(server: tuple[str, int | None] | None) -> bool:
    """Whether only this machine reaches the address; that of a Unix socket is None."""
    if server is None:
        return True
    host = server[0]
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
