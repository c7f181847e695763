"""What every schema has, and the same in words."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from app.language.llm.answer_schemas import (
    EXPERIENCE_SCHEMA,
    described,
    extraction_schema,
    reconcile_schema,
)
from app.language.llm.chat import ChatAnswer, JsonSchema
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import Scope
from app.language.llm.model_profiler import ModelProfiler
from app.language.llm.model_summariser import ModelSummariser
from app.language.llm.profiler import ProfileRequest, Slot
from app.language.llm.prompts import format_note
from app.language.llm.reconciler import Agenda, AgendaMemory
from app.language.llm.summariser import SummaryRequest
from app.language.llm.tokens import EstimatedTokens

KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items"},
    "string": {"enum"},
    "number": set(),
    "integer": set(),
    "boolean": set(),
    "null": set(),
}


class Recorder:
    """Keeps the schemas that it is asked with."""

    name = model = "recorder"

    def __init__(self) -> None:
        self.schemas: list[JsonSchema] = []

    async def answer(self, system: str, user: str, *, schema: JsonSchema, **_: Any) -> ChatAnswer:
        self.schemas.append(schema)
        raise ModelUnavailableError("refused")


@pytest.fixture
async def schemas() -> list[JsonSchema]:
    """All that are sent."""
    chat = Recorder()
    slot = Slot("attributes.profession", "text", "what they do")
    with pytest.raises(ModelUnavailableError):
        await ModelProfiler(chat).derive(
            ProfileRequest("user", [slot], [], datetime(2026, 5, 1, tzinfo=UTC))
        )
    with pytest.raises(ModelUnavailableError):
        await ModelSummariser(chat).summarise(SummaryRequest(50, earlier=["They moved."]))
    old = (AgendaMemory("m1", "The user has a cold.", "fact", 0.9),)
    reconciling = reconcile_schema(Agenda(due=old, parts=old))
    return [extraction_schema(get_args(Scope)), EXPERIENCE_SCHEMA, reconciling, *chat.schemas]


def forms_in(schema: JsonSchema) -> Iterator[JsonSchema]:
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    for form in inner + ([schema["items"]] if "items" in schema else []):
        yield from forms_in(form)


def test_schemas_have_only_what_all_servers_take(schemas: list[JsonSchema]):
    """OpenAI docs, Structured Outputs (every key required, none beside them, an object at the
    root); prism#974, outlines#1676 (no list of types); vllm#16321 (neither limits nor formats).
    """
    assert len(schemas) == 5
    for schema in schemas:
        assert schema["type"] == "object"
        for form in forms_in(schema):
            if "anyOf" in form:
                assert form.keys() == {"anyOf"}
                continue
            assert isinstance(form["type"], str)
            assert form.keys() - {"type"} <= KEYWORDS[form["type"]]
            if form["type"] == "object":
                assert form["required"] == list(form["properties"])
                assert form["additionalProperties"] is False
            assert form["type"] != "array" or form["items"]


def test_form_in_words_is_one_line_for_each_key():
    assert described(EXPERIENCE_SCHEMA).split("\n") == [
        '- "reflection": text',
        '- "experience": object or null, with:',
        '  - "content": text',
        '  - "confidence": number',
        '  - "evidence": list of texts',
    ]


def test_form_in_words_tells_lists_choices_and_kinds_apart():
    lines = described(extraction_schema(("user", "session"))).split("\n")

    assert '- "memories": list of objects, each with:' in lines
    assert '  - "scope": one of "user", "session"' in lines
    assert '  - "evidence": list of texts' in lines
    merges = described(reconcile_schema(Agenda(parts=(AgendaMemory("m", "c", "fact", 1.0),))))
    assert '- "merges": list of objects or null, each with:' in merges.split("\n")


def test_form_in_words_names_every_key_and_choice_and_is_short(schemas: list[JsonSchema]):
    count = EstimatedTokens().count
    for schema in schemas:
        note = format_note(schema)
        for form in forms_in(schema):
            names = [*form.get("properties", {}), *form.get("enum", [])]
            assert all(f'"{name}"' in note for name in names)
        assert not any(word in note for word in ("properties", "anyOf", "required"))
        assert count(described(schema)) < 0.6 * count(json.dumps(schema))
