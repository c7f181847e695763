"""A schema in words: one line for each key, with the kind of its value.

A small model that is shown a JSON Schema copies it; and the words take fewer tokens.
"""

from collections.abc import Iterator
from typing import Any, Final

from app.language.llm.chat import JsonSchema

_KINDS: Final = {
    "array": "list",
    "boolean": "true or false",
    "integer": "whole number",
    "null": "null",
    "number": "number",
    "object": "object",
    "string": "text",
}


def described(schema: JsonSchema) -> str:
    """The keys of an object in their order, those of inner objects further to the right."""
    return "\n".join(_lines(schema, ""))


def _lines(schema: JsonSchema, indent: str) -> Iterator[str]:
    for name, member in schema["properties"].items():
        inner = _object_in(member)
        kind = _kind(member)
        if inner is None:
            yield f'{indent}- "{name}": {kind}'
        else:
            keys = ", each with:" if kind.startswith("list") else ", with:"
            yield f'{indent}- "{name}": {kind}{keys}'
            yield from _lines(inner, f"{indent}  ")


def _kind(schema: JsonSchema) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(f'"{value}"' for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(choice) for choice in schema["anyOf"])
    kind = _KINDS[schema["type"]]
    return f"{kind} of {_plural(_kind(schema['items']))}" if "items" in schema else kind


def _plural(kind: str) -> str:
    return f"{kind}s" if kind in _KINDS.values() else f"values, each {kind}"


def _object_in(schema: JsonSchema) -> Any:
    """What the lines of the object's own keys are about; None when there is none."""
    if "properties" in schema:
        return schema
    choices = [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]
    return next((inner for choice in choices if (inner := _object_in(choice))), None)
