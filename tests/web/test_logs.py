"""What the log says: one line per request, ids and sizes, and never what was said."""

import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import structlog
from asgi_lifespan import LifespanManager
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from sqlalchemy import text

from app.llm.embeddings import Embedder
from app.main import create_app
from app.runtime import Runtime
from app.web.logging import configure_logging
from tests.support.tenants import Caller, make_key

PIN = "4711"
SAID = f"Her pin is {PIN}, she said."


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """Every event as it goes to the renderer, with what the request has bound to it."""
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as captured:
        yield captured


def served(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["event"] == "request_served"]
