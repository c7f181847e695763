"""The OpenAPI document: what clients are generated from, and what /docs shows."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from pydantic import TypeAdapter

from app.main import DESCRIPTIONS, PLAIN_TYPES, create_app
from app.platform.http.descriptions import read_sentences
from app.platform.http.problems import MEDIA_TYPE, Problem
from tests.support.document import document
from tests.support.service import client_of

OTHER_PRODUCTS = ("/mem0", "/mem0-oss")
"""Their clients call these by path: no client of ours is generated from them."""

VERB = re.compile(
    r"(add|append|attach|build|call|cancel|compact|copy|decide|delete|derive|detach|end|export"
    r"|extract|fork|get|import|insert|list|merge|prune|put|read|redeliver|redo|reingest|remove"
    r"|reopen|replace|report|restore|retry|revoke|rewrite|rotate|run|search|split|store|supersede"
    r"|sweep|test|transfer|trim|undo|update|upload|validate)(_[a-z]+)+"
)
PROBES = {"livez", "readyz", "metrics"}


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        if not path.startswith(OTHER_PRODUCTS):
            for method, operation in methods.items():
                yield f"{method.upper()} {path}", operation


def test_operation_ids_are_names_of_methods() -> None:
    ids = [operation["operationId"] for _, operation in operations()]

    assert len(set(ids)) == len(ids) > 150
    assert {"add_memory", "search_memories", "append_messages", "build_context"} <= set(ids)
    assert not [one for one in set(ids) - PROBES if not VERB.fullmatch(one) or len(one) > 32]


def test_tags_come_in_the_order_in_which_a_newcomer_needs_them() -> None:
    tags = [tag["name"] for tag in document()["tags"]]

    assert tags[:4] == ["memories", "sessions", "messages", "context"]
    assert tags[-1] == "operations"
    for name, operation in operations():
        assert len(operation["tags"]) == 1, name
        assert operation["tags"][0] in tags, name
    assert all(tag["description"] for tag in document()["tags"])


def test_every_error_has_an_example_with_its_code() -> None:
    examples = document()["components"]["examples"]
    for name, operation in operations():
        for status, response in operation["responses"].items():
            if int(status) < 400:
                continue
            shown = response["content"][MEDIA_TYPE]["examples"]
            described = re.findall(r"`(\w+)`: ([^;]+)", response["description"])
            problems = [
                Problem.model_validate(
                    examples[one["$ref"].removeprefix("#/components/examples/")]["value"]
                )
                for one in shown.values()
            ]
            assert [(one.code, one.title) for one in problems] == described, (name, status)
            assert {one.status for one in problems} == {int(status)}, (name, status)
    # Its own sentence, where that says nothing of the request.
    assert "`KeMem-User`" in examples["acting_user_mismatch.key-of-another-user"]["value"]["detail"]


def described_parameters() -> set[tuple[str, str, str, str]]:
    """Operation, place, name and description of each."""
    return {
        (operation["operationId"], one["in"], one["name"], one.get("description", ""))
        for methods in document()["paths"].values()
        for operation in methods.values()
        for one in operation.get("parameters", ())
    }


def described_fields() -> set[tuple[str, str, str]]:
    """Schema, name and description of each."""
    return {
        (name.partition("-")[0], field, shape.get("description", ""))
        for name, schema in document()["components"]["schemas"].items()
        for field, shape in schema.get("properties", {}).items()
    }


def test_every_parameter_and_field_says_what_it_is() -> None:
    # What an id or a time looks like is no meaning.
    formats = {TypeAdapter(one).json_schema()["description"] for one in PLAIN_TYPES}
    everything = {*described_parameters(), *described_fields()}

    assert len(everything) > 2000
    assert not sorted(one for one in everything if one[-1] in {"", *formats})
    assert not sorted(one for one in everything if one[-1][-1] not in ".!?…)`")


def test_every_sentence_of_the_file_is_published() -> None:
    """One that no field takes is stale, or hidden by what the code says."""
    sentences = read_sentences(DESCRIPTIONS)
    parameters, fields = described_parameters(), described_fields()
    written = {
        *((name, *one) for name, own in sentences["schemas"].items() for one in own.items()),
        *((name, *one) for name, own in sentences["operations"].items() for one in own.items()),
        *((place, *one) for place, own in sentences["parameters"].items() for one in own.items()),
        *(("", *one) for one in sentences["fields"].items()),
    }

    published = {
        *fields,
        *((name, parameter, said) for name, _, parameter, said in parameters),
        *((place, parameter, said) for _, place, parameter, said in parameters),
        *(("", field, said) for _, field, said in fields),
    }

    assert not sorted(written - published)


def test_lines_of_an_export_are_a_text_for_generators() -> None:
    """A generator that took them for one object could neither read an export nor send one."""
    export = document()["paths"]["/v1/export"]["get"]["responses"]["200"]["content"]
    body = document()["paths"]["/v1/import"]["post"]["requestBody"]["content"]
    for content in (export, body):
        schema = content["application/x-ndjson"]["schema"]
        assert schema["type"] == "string"
        assert "$ref" not in schema
        assert schema["contentSchema"] == {"$ref": "#/components/schemas/ExportLine"}
    assert "ExportLine" in document()["components"]["schemas"]
    assert body["application/octet-stream"]["schema"]["format"] == "binary"


async def test_root_leads_to_the_page(app: FastAPI) -> None:
    async with client_of(app, None) as client:
        client.base_url = "http://test"
        root = await client.get("/")
        assert (root.status_code, root.headers["Location"]) == (307, "docs")
        assert (await client.get("/", follow_redirects=True)).url == "http://test/docs"
        page = await client.get("/redoc")
        for address in re.findall(r'(?:src|href|spec-url)="([^"]+)"', page.text):
            assert (await client.get(address)).status_code == 200, address
        assert "default-src 'self'" in page.headers["Content-Security-Policy"]


async def test_the_document_is_made_beside_other_requests() -> None:
    app = create_app(nullcontext())
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
        began, last = time.process_time(), time.thread_time()
        longest = 0.0
        both = asyncio.gather(client.get("/openapi.json"), client.get("/openapi.json"))
        while not both.done():
            await asyncio.sleep(0.001)
            now = time.thread_time()
            longest, last = max(longest, now - last), now
        first, second = await both

    # What the loop's thread did between two turns of others, of all that was done.
    assert longest < (time.process_time() - began) / 2
    assert first.status_code == 200
    # Whoever comes while it is made gets the whole, too.
    assert first.content == second.content
    assert json.loads(first.content) == app.openapi()
    assert "securitySchemes" in first.json()["components"]
