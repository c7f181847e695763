"""Descriptions of parameters and fields that say nothing of themselves, in a published document.

A name means the same wherever it stands, so that its sentence is written once, in a file that is
read when the document is made: starting the service does not pay for it. What a parameter or a
field says of itself in the code counts first.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

Sentences = Mapping[str, Any]
"""By their names: `parameters` of a path and of a query, and `fields`. By the name of the operation
or the schema, and then theirs: `operations` and `schemas`.
"""


def read_sentences(path: Path) -> Sentences:
    """The sentences that a file has; in it, `operations` and `schemas` may share a group of them.

    The names of those who do stand before the group, with a space between two.
    """
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for part in ("operations", "schemas"):
        single: dict[str, dict[str, str]] = {}
        for names, group in read[part].items():
            for name in names.split():
                single.setdefault(name, {}).update(group)
        read[part] = single
    return read


def describe(document: dict[str, Any], sentences: Sentences, *, plain_types: Iterable[Any]) -> None:
    """Give each parameter and each field of the document a description, as far as there is one.

    Of two, that of the code goes first, then that of the operation or the schema, of the type, and
    of the name. That of one of the `plain_types`, such as an id, says how it looks, and is none.
    """
    types = _Types(document, plain_types)
    for operation in (
        operation for path in document["paths"].values() for operation in path.values()
    ):
        special = sentences["operations"].get(operation["operationId"], {})
        for parameter in operation.get("parameters", ()):
            by_name = sentences["parameters"].get(parameter["in"], {})
            types.describe(parameter, parameter["schema"], parameter["name"], special, by_name)
    for name, schema in document["components"]["schemas"].items():
        special = sentences["schemas"].get(name.partition("-")[0], {})
        for field, shape in schema.get("properties", {}).items():
            types.describe(shape, shape, field, special, sentences["fields"])


class _Types:
    """What the types of a document say of themselves."""

    def __init__(self, document: dict[str, Any], plain_types: Iterable[Any]) -> None:
        self._schemas = document["components"]["schemas"]
        self._formats = {TypeAdapter(name).json_schema()["description"] for name in plain_types}

    def describe(
        self,
        described: dict[str, Any],
        shape: dict[str, Any],
        name: str,
        special: Mapping[str, str],
        by_name: Mapping[str, str],
    ) -> None:
        said = self._own(described) or special.get(name) or self._of(shape) or by_name.get(name)
        if said:
            described["description"] = said

    def _own(self, shape: Mapping[str, Any]) -> str | None:
        said: str | None = shape.get("description")
        return None if said in self._formats else said

    def _of(self, shape: dict[str, Any]) -> str | None:
        """What the type says; it is moved from there, so that it stands in the document once."""
        if "$ref" in shape:
            named = self._schemas[shape["$ref"].rpartition("/")[2]]
            return str(named.get("description", "")).partition("\n\n")[0] or None
        variants = [variant for variant in shape.get("anyOf", ()) if variant != {"type": "null"}]
        if len(variants) != 1:
            return None
        if said := self._own(variants[0]):
            del variants[0]["description"]
        return said or self._of(variants[0])
