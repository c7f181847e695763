"""The published document, completed with the errors of every operation, and the page at /docs.

FastAPI lets a route's error list replace its router's for the same status, gives errors the
media type of answers, and promises a 422 shape of its own. A client that is generated from
the document would stumble over each of these.

The page and its assets come from an installed package: it works without the internet.
"""

import asyncio
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from app.errors import DomainError, UnprocessableError
from app.platform.database.failures import (
    DatabaseBusyError,
    DatabaseDiskFullError,
    DatabaseReadOnlyError,
    DatabaseUnavailableError,
    OutcomeUnknownError,
    OverloadedError,
    UnstorableTextError,
)
from app.platform.http.problems import MEDIA_TYPE, Problem, responses_for
from app.platform.http.rates import RateLimitedError

ACTING_USER: Final = "KeMem-User"

_ACTING_USER_SCHEME = {
    "type": "apiKey",
    "in": "header",
    "name": ACTING_USER,
    "description": "The id of the user you act for: the request is answered as a key of that "
    "user's would be. Leave it out to act as the application itself.",
}


class InvalidRequestError(UnprocessableError):
    """Never raised: what FastAPI finds is answered by `problems.py` under this name."""

    code = "invalid_request"
    title = "Request is not valid"


class BodyTooLargeError(DomainError):
    status = 413
    code = "body_too_large"
    title = "Body too large"

    def __init__(self, limit: int) -> None:
        most = f"at most {limit} bytes"
        super().__init__(
            f"A request body has {most}. Send it in several requests.",
            limit=limit,
            errors=[{"location": ["body"], "detail": most}],
        )


class RequestExpiredError(DomainError):
    """What it wrote may have been committed, so it is no 503."""

    status = 504
    code = "request_expired"
    title = "Request took too long"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The request was cancelled after {seconds:g} seconds. It may have been written; "
            "repeat with the same Idempotency-Key."
        )


class CrashError(DomainError):
    """Never raised: unexpected errors are answered under this name."""

    status = 500
    code = "internal_error"
    title = "Internal error"


ALWAYS = (
    InvalidRequestError,
    UnstorableTextError,
    CrashError,
    DatabaseUnavailableError,
    DatabaseBusyError,
    DatabaseReadOnlyError,
    DatabaseDiskFullError,
    OutcomeUnknownError,
    OverloadedError,
    RateLimitedError,
    RequestExpiredError,
)


def install_document(app: FastAPI, *key_errors: type[DomainError]) -> None:
    """Publish `key_errors` on every operation that takes a key, and all errors as problems.

    The document is made when it is first asked for, which takes a second, in a thread.
    """
    plain = app.openapi
    making = Lock()

    def openapi() -> dict[str, Any]:
        with making:
            return complete()

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            for operation in _operations(document):
                _complete(operation, key_errors)
            _name_versions(document)
            schemas = document["components"]["schemas"] | _problem_schemas()
            document["components"]["schemas"] = dict(sorted(schemas.items()))
            schemes = document["components"].setdefault("securitySchemes", {})
            schemes["acting_user"] = _ACTING_USER_SCHEME
            for unused in ("HTTPValidationError", "ValidationError"):
                document["components"]["schemas"].pop(unused, None)
        return plain()

    app.openapi = openapi  # type: ignore[method-assign] # FastAPI's documented way

    # FastAPI's own route makes it on the event loop. This one does not hold `app`: see below.
    @app.get("/openapi.json", include_in_schema=False)
    async def document(request: Request) -> Response:
        return await asyncio.to_thread(lambda: JSONResponse(request.app.openapi()))


def _problem_schemas() -> dict[str, Any]:
    schema = Problem.model_json_schema(
        mode="serialization", ref_template="#/components/schemas/{model}"
    )
    # FastAPI does not publish a default of null either.
    del schema["properties"]["errors"]["default"]
    return {**schema.pop("$defs", {}), Problem.__name__: schema}


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from path.values()


def _complete(operation: dict[str, Any], key_errors: tuple[type[DomainError], ...]) -> None:
    responses: dict[str, dict[str, Any]] = operation["responses"]
    if _is_validation_of_fastapi(responses.get("422", {})):
        del responses["422"]
    general: list[type[DomainError]] = []
    if {"key": []} in operation.get("security", []):
        general += [*key_errors, *ALWAYS]
        operation["security"] = [{"key": []}, {"key": [], "acting_user": []}]
    if "requestBody" in operation:
        general.append(BodyTooLargeError)
    for status, response in responses_for(*general).items():
        here = responses.setdefault(str(status), {"description": ""})
        described = [here["description"], *response["description"].split("; ")]
        new = [part for part in described[1:] if part not in here["description"]]
        here["description"] = "; ".join(part for part in [described[0], *new] if part)
    for status, response in responses.items():
        if int(status) >= 400:
            schema = {"$ref": "#/components/schemas/Problem"}
            response["content"] = {MEDIA_TYPE: {"schema": schema}}
    operation["responses"] = dict(sorted(responses.items()))


def _name_versions(document: dict[str, Any]) -> None:
    """Publish the `ETag` of every PATCH whose answer has a version; the middleware sets it."""
    schemas = document["components"]["schemas"]
    for path in document["paths"].values():
        answer = path.get("patch", {}).get("responses", {}).get("200", {})
        schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
        name = schema.get("$ref", "").rpartition("/")[2]
        if "version" in schemas.get(name, {}).get("properties", {}):
            answer["headers"] = {
                "ETag": {
                    "description": "The new `version`, quoted; `If-Match` takes it as it is.",
                    "schema": {"type": "string"},
                }
            }


def _is_validation_of_fastapi(response: dict[str, Any]) -> bool:
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema == {"$ref": "#/components/schemas/HTTPValidationError"})


ASSETS = Path(str(files("fastapi_offline"))) / "static"


def install_page(app: FastAPI) -> None:
    """Serve the page at /docs and its assets."""
    app.mount("/docs/assets", StaticFiles(directory=ASSETS), name="docs-assets")
    # FastAPI caches what it knows of an endpoint for ever: one that held `app` would keep it alive.
    title = f"{app.title} API"

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url="/openapi.json",
            title=title,
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
