"""What a model's answers look like: as strict structured output wants it, and in words.

Only forms: what a member means is said in `prompts`. A remark stands before what it is the
reason of, because a model writes in that order. A type is one word: some servers refuse a list of
types, and what may be null is a choice.

A small model that is shown a JSON Schema copies it; and the words take fewer tokens.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

from app.language.llm.chat import JsonSchema
from app.language.llm.extractor import MEMORY_TYPES, Scope
from app.language.llm.model_relations import ENTITY_TYPES
from app.language.llm.reconciler import Agenda, ReconcileEvent, ReviewVerdict


def _object(**members: JsonSchema) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _list(items: JsonSchema) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _or_null(form: JsonSchema) -> dict[str, Any]:
    return {"anyOf": [form, {"type": "null"}]}


def _one_of(values: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


_TEXT: Final = {"type": "string"}
_TEXT_OR_NULL: Final = _or_null(_TEXT)
_NUMBER: Final = {"type": "number"}


_RELATION: Final = _object(source=_TEXT, relation=_TEXT, destination=_TEXT)
_ENTITY: Final = _object(name=_TEXT, type=_one_of(ENTITY_TYPES))


_EXPERIENCE: Final = _object(content=_TEXT, confidence=_NUMBER, evidence=_list(_TEXT))


def extraction_schema(scopes: Sequence[Scope], *, ended: bool = False) -> JsonSchema:
    """A reflection, entries, and what the names in their relations are; with `ended` also what the
    session taught, else whether this piece of it did.

    An entry names one of `scopes`, where there are several to choose from.
    """
    members: dict[str, JsonSchema] = {"scope": _one_of(scopes)} if len(scopes) > 1 else {}
    entry = _object(
        content=_TEXT,
        type=_one_of(MEMORY_TYPES),
        confidence=_NUMBER,
        evidence=_list(_TEXT),
        **members,
        attribute=_TEXT_OR_NULL,
        valid_from=_TEXT_OR_NULL,
        valid_to=_TEXT_OR_NULL,
        due=_TEXT_OR_NULL,
        source_error=_TEXT_OR_NULL,
        retracts={"type": "boolean"},
        relations=_list(_RELATION),
    )
    # Without it the answer counts too.
    taught = {"experience": _EXPERIENCE} if ended else {"outcome": {"type": "boolean"}}
    last = {name: _or_null(form) for name, form in taught.items()}
    return _object(
        reflection=_TEXT, memories=_list(entry), entities=_or_null(_list(_ENTITY)), **last
    )


EXPERIENCE_SCHEMA: Final[JsonSchema] = _object(
    reflection=_TEXT,
    experience=_or_null(_EXPERIENCE),
)

_DECISIONS: Final = _list(
    _object(
        statement=_TEXT,
        reason=_TEXT,
        event=_one_of(get_args(ReconcileEvent)),
        memories=_list(_TEXT),
        content=_TEXT_OR_NULL,
        rests=_list(_object(memory=_TEXT, content=_TEXT, attribute=_TEXT_OR_NULL)),
    )
)
_REVIEWS: Final = _or_null(
    _list(_object(memory=_TEXT, reason=_TEXT, verdict=_one_of(get_args(ReviewVerdict))))
)
_MERGES: Final = _or_null(
    _list(_object(memories=_list(_TEXT), reason=_TEXT, content=_TEXT, confidence=_NUMBER))
)


def reconcile_schema(agenda: Agenda) -> JsonSchema:
    """Decisions; for what is on the agenda further lists, without which the answer counts too."""
    members: dict[str, JsonSchema] = {"decisions": _DECISIONS}
    if agenda.due:
        members["reviews"] = _REVIEWS
    if agenda.parts:
        members["merges"] = _MERGES
    return _object(**members)


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
