"""The OpenAPI documents of the two dialects: every parameter and every field says what it is."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from pydantic import TypeAdapter

from app.integrations.mem0.dialect_router import DESCRIPTIONS, PLAIN_TYPES
from app.platform.http.descriptions import read_sentences
from tests.support.mem0 import mem0_client

SERVER_METHODS = {
    "add_memory_memories_post", "get_all_memories_memories_get",
    "delete_all_memories_memories_delete", "get_memory_memories__memory_id__get",
    "update_memory_memories__memory_id__put", "delete_memory_memories__memory_id__delete",
    "memory_history_memories__memory_id__history_get", "search_memories_search_post",
    "list_entities_entities_get", "delete_entity_entities__entity_type___entity_id__delete",
}  # fmt: skip
"""Operation ids of mem0's server, from which programs make the names of their tools."""


def described(document: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """The place of each parameter, or the schema of each field; its operation, name, sentence."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for one in operation.get("parameters", ()):
                said = one.get("description", "")
                yield one["in"], operation["operationId"], one["name"], said
    for name, schema in document["components"]["schemas"].items():
        for field, shape in schema.get("properties", {}).items():
            yield name.partition("-")[0], "", field, shape.get("description", "")


@pytest.fixture
async def documents(app: FastAPI) -> list[dict[str, Any]]:
    async with mem0_client(app, None) as client:
        return [await read(client, path) for path in ("/mem0", "/mem0-oss")]


async def read(client: AsyncClient, path: str) -> dict[str, Any]:
    response = await client.get(f"http://test{path}/openapi.json")
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    assert document["servers"] == [{"url": path}]
    return document


async def test_every_parameter_and_field_says_what_it_is(documents: list[dict[str, Any]]) -> None:
    formats = {TypeAdapter(one).json_schema()["description"] for one in PLAIN_TYPES}
    hosted, server = (list(described(one)) for one in documents)

    assert len(hosted) > 250
    assert len(server) > 30
    for one in (*hosted, *server):
        assert one[-1] not in {"", *formats}, one
        assert one[-1][-1] in ".!?…)`", one


async def test_every_sentence_of_the_file_is_published(documents: list[dict[str, Any]]) -> None:
    sentences = read_sentences(DESCRIPTIONS)
    rows = [one for document in documents for one in described(document)]
    published = {(where, name, said) for where, _, name, said in rows}
    fields = {(name, said) for where, _, name, said in rows if where not in {"path", "query"}}
    parts = {**sentences["parameters"], **sentences["schemas"]}

    assert sentences["operations"] == {}
    assert {(part, *one) for part, own in parts.items() for one in own.items()} <= published
    assert set(sentences["fields"].items()) <= fields


async def test_errors_of_ours_are_not_promised(documents: list[dict[str, Any]]) -> None:
    for document in documents:
        answers = {
            status
            for methods in document["paths"].values()
            for operation in methods.values()
            for status in operation["responses"]
        }
        assert "422" not in answers
        assert (
            not {"HTTPValidationError", "ValidationError"}
            & document["components"]["schemas"].keys()
        )


async def test_operations_of_the_server_have_its_names(documents: list[dict[str, Any]]) -> None:
    ids = {
        operation["operationId"]
        for methods in documents[1]["paths"].values()
        for operation in methods.values()
    }
    assert ids >= SERVER_METHODS
