"""The published document, made once: to make it takes seconds."""

from functools import cache
from typing import Any

from tests.support.application import shared_application


@cache
def document() -> dict[str, Any]:
    """What the service publishes as OpenAPI. Whoever changes it takes a copy."""
    return shared_application().openapi()
