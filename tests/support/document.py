"""The published document, made once: to make it takes seconds."""

from contextlib import nullcontext
from functools import cache
from typing import Any

from app.main import create_app


@cache
def document() -> dict[str, Any]:
    """What the service publishes as OpenAPI. Whoever changes it takes a copy."""
    return create_app(nullcontext()).openapi()
