"""The docs page at /docs, from files of an installed package: it works without the internet."""

from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

ASSETS = Path(str(files("fastapi_offline"))) / "static"


def install(app: FastAPI) -> None:
    """Serve the page and its assets."""
    app.mount("/docs/assets", StaticFiles(directory=ASSETS), name="docs-assets")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url="/openapi.json",
            title=f"{app.title} API",
            swagger_js_url="/docs/assets/swagger-ui-bundle.js",
            swagger_css_url="/docs/assets/swagger-ui.css",
            swagger_favicon_url="/docs/assets/favicon.png",
            swagger_ui_parameters={
                "persistAuthorization": True,
                "displayRequestDuration": True,
                "docExpansion": "none",
                "tryItOutEnabled": True,
            },
        )
