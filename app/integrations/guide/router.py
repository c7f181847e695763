"""/guide: the manual, as `make guide` builds it and the package carries it."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope
from typing_extensions import override

from app.errors import NotFoundError


class GuideNotBuiltError(NotFoundError):
    """The files of the guide are made from the checkout, and here nobody has made them."""

    code = "guide_not_built"
    title = "Guide not built"


SITE: Final = Path(str(files(__package__))) / "site"

PAGE_HEADERS: Final = {
    # Icons of the theme are images in its style sheets.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    # The names of pages stay when an update replaces them.
    "Cache-Control": "no-cache",
}


class GuideFiles(StaticFiles):
    """The files of a built site; where none was built each is 404."""

    def __init__(self, site: Path) -> None:
        super().__init__(directory=site, html=True, check_dir=False)
        self._site = site

    @override
    async def check_config(self) -> None:
        # Asked at each request until there is a site: a build may come while the service runs.
        if not self._site.is_dir():
            raise GuideNotBuiltError("Run `make guide` in the checkout of the service.")

    @override
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(PAGE_HEADERS)
        return response


def install_guide(app: FastAPI, site: Path = SITE) -> None:
    """Serve the site at /guide; without a key, since it is the same for everybody."""
    app.mount("/guide", GuideFiles(site), name="guide")
