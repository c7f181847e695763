"""Odd bodies to every route: the error names fields of the API and no words of our code."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from tests.support.mem0 import mem0_client
from tests.support.tenants import Caller

ODD: list[Any] = [
    7, "", "odd", [7], [{"type": 7}], {"odd": [7]},
    [{"type": "text", "text": 7, "role": 7, "content": [{"type": 7}]}],
]  # fmt: skip
OURS = re.compile(
    r"function-|constrained-|tagged-|lax-or|json-or|nullable|\w\[|instance of|pydantic|Value error"
    r"|Assertion|\b[A-Z]\w+(Request|Create|Patch|Schema|Message|Query|Part|Filter)\b"
)


def bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Method, address and fields of every route with a JSON object as its body."""
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            options = [schema, *schema.get("anyOf", ())]
            names = [one["$ref"].rpartition("/")[2] for one in options if "$ref" in one]
            fields = [field for name in names for field in schemas[name].get("properties", {})]
            if fields:
                yield method, re.sub(r"\{\w+\}", "x", path), fields


async def words(client: AsyncClient, document: dict[str, Any]) -> tuple[int, list[str]]:
    """How many odd bodies were refused, and what was said of them with words of our code."""
    refused, found = 0, []
    for method, path, fields in bodies(document):
        for odd in ODD:
            body = dict.fromkeys(fields, odd)
            answer = await client.request(method, path, json=body)
            assert answer.status_code < 500, (path, odd, answer.text)
            if answer.status_code in {400, 422}:
                refused += 1
                said = answer.json()
                texts = [said["detail"], *(
                    ".".join([*one["location"], one["detail"]]) for one in said.get("errors") or ()
                )]  # fmt: skip
                found += [f"{method} {path}: {one}" for one in texts if OURS.search(one)]
    return refused, found


async def test_our_routes(client: AsyncClient) -> None:
    document = (await client.get("http://test/openapi.json")).json()
    document["paths"] = {
        path.removeprefix("/v1"): operations
        for path, operations in document["paths"].items()
        if path.startswith("/v1/")
    }

    refused, found = await words(client, document)

    assert refused > 300
    assert found == []


@pytest.mark.parametrize(("path", "least"), [("/mem0", 80), ("/mem0-oss", 15)])
async def test_routes_of_a_dialect(app: FastAPI, acme: Caller, path: str, least: int) -> None:
    async with mem0_client(app, acme.key) as client:
        client.base_url = f"http://test{path}"
        client.headers["X-API-Key"] = acme.key
        if path == "/mem0-oss":
            del client.headers["Authorization"]
        document = (await client.get("/openapi.json")).json()

        refused, found = await words(client, document)

    assert refused > least
    assert found == []
