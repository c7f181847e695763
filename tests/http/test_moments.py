"""Moments of requests: without a zone they mean nothing, and the document says so of each."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from httpx import AsyncClient

from tests.support.api import fields, problem
from tests.support.document import document

DOCUMENT = document()
SCHEMAS = DOCUMENT["components"]["schemas"]
NAIVE = "2026-11-21T12:00:00"


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def named(schema: Any) -> set[str]:
    return set(re.findall(r"#/components/schemas/(\w+)", json.dumps(schema)))


def asked_for() -> dict[str, dict[str, Any]]:
    """Every field of a request that takes a moment, with its schema."""
    found: dict[str, dict[str, Any]] = {}
    waiting: set[str] = set()
    for name, operation in operations():
        for one in operation.get("parameters", []):
            found[f"{name} {one['name']}"] = one["schema"] | {
                key: value for key, value in one.items() if key == "description"
            }
        waiting |= named(operation.get("requestBody", {}))
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= (named(SCHEMAS.get(name, {})) - seen) & SCHEMAS.keys()
        for field, schema in SCHEMAS.get(name, {}).get("properties", {}).items():
            found[f"{name}.{field}"] = schema
    return {name: schema for name, schema in found.items() if '"date-time"' in json.dumps(schema)}


MOMENTS = asked_for()


def test_there_are_some() -> None:
    assert {"ContextRequest.as_of", "GET /v1/memories known_at"} <= MOMENTS.keys()


@pytest.mark.parametrize("name", sorted(MOMENTS))
def test_each_says_that_it_needs_a_zone(name: str) -> None:
    assert "with a zone" in json.dumps(MOMENTS[name])


@pytest.mark.parametrize("field", ["as_of", "known_at"])
async def test_without_one_it_is_refused_by_name(client: AsyncClient, field: str) -> None:
    params = {"user_id": "ana", field: NAIVE}

    for response, place in (
        (await client.get("/memories", params=params), "query"),
        (await client.get("/graph/relations", params=params), "query"),
        (await client.post("/memories/search", json=params | {"query": "tea"}), "body"),
    ):
        assert fields(problem(response, 422, "invalid_request")) == [f"{place}.{field}"]
