"""/dashboard: the built page and its files, as `make dashboard` writes them and the package carries
them, and a key for whoever started the service on this machine.
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Final

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.security.utils import get_authorization_scheme_param
from starlette.responses import Response

from app.identity.tenants.access import SCOPES, Principal
from app.identity.tenants.errors import UnknownSignInCodeError
from app.identity.tenants.principal import charge, identified
from app.identity.tenants.schemas import KeyCreated
from app.identity.tenants.sign_in_service import SignInService
from app.platform.http.dependencies import provided
from app.platform.http.health import is_local
from app.platform.values.fields import ReadSchema

PAGE: Final = "index.html"

_MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True)
class BuiltFile:
    media_type: str
    content: bytes

    @cached_property
    def compressed(self) -> bytes:
        """With gzip; made when it is first asked for, since the largest file takes longest."""
        return gzip.compress(self.content, mtime=0)


@cache
def built_files() -> Mapping[str, BuiltFile]:
    """All built files by name, as they are when they are first asked for: they belong together, and
    an update replaces them while the service goes on.
    """
    folder = files(__package__) / "assets"
    return {
        file.name: BuiltFile(_MEDIA_TYPES[file.name.rpartition(".")[2]], file.read_bytes())
        for file in folder.iterdir()
    }


def find_built(name: str) -> BuiltFile | None:
    """The built file of this name, or None."""
    return built_files().get(name)


router = APIRouter(prefix="/dashboard", include_in_schema=False)

CallerDep = Annotated[Principal, Depends(identified)]
SignInDep = Annotated[SignInService, provided(SignInService)]

PAGE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
_FOR_EVER: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
"""Names of files hold the hash of their content, so no file ever changes."""


class KeyAccess(ReadSchema):
    scopes: list[str]
    user_id: str | None
    agent_id: str | None
    default_user_id: str | None


@router.get("/key")
async def key_access(request: Request, principal: CallerDep) -> KeyAccess:
    """What the key of the request may do, so that the page offers nothing else."""
    charge(request, principal, "read")
    return KeyAccess(
        scopes=[scope for scope in SCOPES if principal.may(scope)],
        user_id=principal.access.user_id,
        agent_id=principal.access.agent_id,
        default_user_id=principal.access.default_user_id,
    )


@router.api_route("", methods=["GET", "HEAD"])
async def dashboard(request: Request) -> Response:
    """The page; without a key, since it shows nothing by itself."""
    return _sent(request, PAGE, PAGE_HEADERS)


@router.api_route("/assets/{name}", methods=["GET", "HEAD"])
async def dashboard_asset(request: Request, name: str) -> Response:
    if name == PAGE:
        raise HTTPException(404)
    return _sent(request, name, _FOR_EVER)


@router.post("/sign-in", status_code=201)
async def sign_in(request: Request, service: SignInDep) -> KeyCreated:
    """Exchange a one-time code, sent as `Authorization: Code <code>`, for a key.

    The code is no body, since nobody may send bodies without a key. Codes are for this machine:
    from elsewhere each is unknown, so that nobody without a key makes the database look for one.
    """
    if not is_local(request):
        raise UnknownSignInCodeError
    scheme, code = get_authorization_scheme_param(request.headers.get("Authorization"))
    if scheme.lower() != "code":
        raise UnknownSignInCodeError
    return await service.sign_in(code)


def _sent(request: Request, name: str, headers: dict[str, str]) -> Response:
    built = find_built(name)
    if built is None:
        raise HTTPException(404)
    headers = {"Vary": "Accept-Encoding", **headers}
    content = built.content
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
        content = built.compressed
    return Response(content, headers=headers, media_type=built.media_type)
