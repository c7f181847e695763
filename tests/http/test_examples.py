"""The examples of answers in the document: recorded, as a service answers today, and valid."""

import json
from typing import Any

from httpx import AsyncClient
from jsonschema import Draft202012Validator

from scripts.record_examples import EXAMPLES, record
from tests.support.document import document

RECORDED: dict[str, Any] = json.loads(EXAMPLES.read_text(encoding="utf-8"))


def shape(value: Any) -> Any:
    """The names in an answer, without its values."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(one) for one in value[:1]] if isinstance(value, list) else None


def test_examples_fit_the_schemas_of_their_routes() -> None:
    published = document()
    shown = {}
    for methods in published["paths"].values():
        for operation in methods.values():
            for answer in operation["responses"].values():
                content = answer.get("content", {}).get("application/json", {})
                if "example" in content:
                    name = operation["operationId"]
                    shown[name] = content["example"]
                    schema = content["schema"] | {"components": published["components"]}
                    Draft202012Validator(schema).validate(content["example"])
    assert shown == RECORDED
    assert len(shown) == 20


async def test_examples_are_what_the_service_answers(client: AsyncClient) -> None:
    found = await record(client)

    for name, example in RECORDED.items():
        assert found[name].keys() == example.keys(), f"{name}: run scripts.record_examples"
        for field in ("items", "results", "messages"):
            assert shape(found[name].get(field)) == shape(example.get(field)), (name, field)
