"""The published document, completed with the errors of every operation, and the page at /docs.

FastAPI lets a route's error list replace its router's for the same status, gives errors the
media type of answers, and promises a 422 shape of its own. A client that is generated from
the document would stumble over each of these.

The pages and their assets come from an installed package: they work without the internet.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from inspect import Parameter, signature
from pathlib import Path
from threading import Lock
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
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
from app.platform.http.descriptions import describe, read_sentences
from app.platform.http.problems import MEDIA_TYPE, Problem, responses_for
from app.platform.http.rates import RateLimitedError

ACTING_USER: Final = "KeMem-User"

_ACTING_USER_SCHEME = {
    "type": "apiKey",
    "in": "header",
    "name": ACTING_USER,
    "description": "The id of the user you act for, in UTF-8, with all but ASCII letters, digits "
    "and `. _ : @ | + = ~ -` percent-encoded: the request is answered as a key of that user's "
    "would be. Leave it out to act as the application itself.",
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


def install_document(
    app: FastAPI,
    *key_errors: type[DomainError],
    examples: Path,
    descriptions: Path,
    plain_types: Iterable[Any],
) -> None:
    """Publish `key_errors` on every operation that takes a key, and all errors as problems.

    `examples` is a file with answers by operation id, `descriptions` one with sentences for what
    does not describe itself, as what is of one of the `plain_types` does not.

    The document is made when it is first asked for, which takes a second, in a thread.
    """
    plain = app.openapi
    making = Lock()

    def openapi() -> dict[str, Any]:
        with making:
            return complete()

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            document, known = plain(), _known_errors()
            answers = json.loads(examples.read_text(encoding="utf-8"))
            for operation in _operations(document):
                _show(operation, answers)
                _complete(operation, key_errors, known)
            document["components"]["examples"] = {
                _name(error): _problem_example(error) for error in sorted(known.values(), key=_name)
            }
            _name_versions(document)
            schemas = document["components"]["schemas"] | _problem_schemas()
            document["components"]["schemas"] = dict(sorted(schemas.items()))
            schemes = document["components"].setdefault("securitySchemes", {})
            schemes["acting_user"] = _ACTING_USER_SCHEME
            for unused in ("HTTPValidationError", "ValidationError"):
                document["components"]["schemas"].pop(unused, None)
            describe(document, read_sentences(descriptions), plain_types=plain_types)
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


def _show(operation: dict[str, Any], answers: dict[str, Any]) -> None:
    """Put the example of an operation beside the schema of its success."""
    name = operation["operationId"]
    if name in answers:
        success = operation["responses"][min(operation["responses"])]
        content = success["content"]["application/json"]
        content["example"] = answers[name]


def _complete(
    operation: dict[str, Any],
    key_errors: tuple[type[DomainError], ...],
    known: dict[tuple[str, str], type[DomainError]],
) -> None:
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
        described = f"{here['description']}; {response['description']}".split("; ")
        here["description"] = "; ".join(dict.fromkeys(part for part in described if part))
    for status, response in responses.items():
        if int(status) >= 400:
            response["content"] = {
                MEDIA_TYPE: {
                    "schema": {"$ref": "#/components/schemas/Problem"},
                    "examples": {
                        _name(known[code]): {"$ref": f"{_EXAMPLES}{_name(known[code])}"}
                        for code in _CODE.findall(response["description"])
                    },
                }
            }
        for content in response.get("content", {}).values():
            if "contentSchema" in content.get("schema", {}):
                # The model of a line, for which FastAPI takes the whole answer.
                content["schema"].pop("$ref", None)
    operation["responses"] = dict(sorted(responses.items()))


_EXAMPLES: Final = "#/components/examples/"
_CODE: Final = re.compile(r"`(\w+)`: ([^;]+)")
"""A code and a title in the description of a response, as `responses_for` writes them."""


def _known_errors() -> dict[tuple[str, str], type[DomainError]]:
    """An error for each code and title; the one that every route may answer is the first choice."""
    known: dict[tuple[str, str], type[DomainError]] = {}
    first: tuple[type[DomainError], ...] = (*ALWAYS, BodyTooLargeError)
    for error in (*first, *_concrete(DomainError)):
        known.setdefault((error.code, error.title), error)
    return known


def _name(error: type[DomainError]) -> str:
    """Of an example: two packages may name a class alike, and two titles may share a code."""
    return re.sub(r"[^a-z_.]+", "-", f"{error.code}.{error.title.lower()}")


def _concrete(base: type[DomainError]) -> Iterator[type[DomainError]]:
    for error in base.__subclasses__():
        if hasattr(error, "code"):
            yield error
        yield from _concrete(error)


def _problem_example(error: type[DomainError]) -> dict[str, Any]:
    """What an error looks like; with its own sentence if that says nothing of the request."""
    asked = [
        parameter
        for parameter in signature(error).parameters.values()
        if parameter.default is Parameter.empty
    ]
    problem = Problem(
        type=f"/problems/{error.code}",
        title=error.title,
        status=error.status,
        detail=f"{error.title}." if asked else error().detail,  # type: ignore[call-arg]
        instance="/v1/…",
        code=error.code,
        request_id="req_5b1f0c7d9a3e4f62",
    )
    return {"summary": error.title, "value": problem.model_dump(exclude_none=True)}


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
_REDOC_HEADERS: Final = {
    # Its footer would load a picture of its makers from their site.
    "Content-Security-Policy": "default-src 'self'; script-src 'self' blob:; worker-src blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:"
}


def install_page(app: FastAPI) -> None:
    """Serve the pages at /docs and /redoc with their assets; / leads to the first."""
    app.mount("/docs/assets", StaticFiles(directory=ASSETS), name="docs-assets")
    # FastAPI caches what it knows of an endpoint for ever: one that held `app` would keep it alive.
    title = f"{app.title} API"

    @app.get("/", include_in_schema=False)
    async def root() -> RedirectResponse:
        return RedirectResponse("docs")

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

    @app.get("/redoc", include_in_schema=False)
    async def redoc() -> HTMLResponse:
        page = get_redoc_html(
            openapi_url="/openapi.json",
            title=title,
            redoc_js_url="/docs/assets/redoc.standalone.js",
            redoc_favicon_url="/docs/assets/favicon.png",
            with_google_fonts=False,
        )
        page.headers.update(_REDOC_HEADERS)
        return page
