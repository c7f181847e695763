"""The profiler that asks a model: any that can be chatted with."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.language.llm.chat import ChatModel, JsonSchema
from app.language.llm.model_entries import storable
from app.language.llm.profile_prompts import ACKNOWLEDGEMENT, ANNOUNCEMENT, profile_prompt
from app.language.llm.profiling import Derivation, Derived, ProfileRequest, Slot, SlotValue
from app.language.llm.prompt_lines import cut, day, line

OUTPUT_TOKENS: Final = 4_000
LONGEST_MEMORY: Final = 600
"""Characters of one memory that are shown; a statement is seldom a third of that."""


class ModelProfiler:
    """Asks one chat model. Without a state of its own, so calls may overlap."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def model(self) -> str:
        return self._chat.model

    async def derive(self, request: ProfileRequest) -> Derivation:
        """As the port says. Evidence that is no memory of the request is dropped, and a value
        with none left with it.
        """
        ids = {f"m{number}": one.memory_id for number, one in enumerate(request.known, 1)}
        answer = await self._chat.answer(
            profile_prompt(request.subject, request.slots, request.now.date().isoformat()),
            _rendered(request),
            opening=(ANNOUNCEMENT, ACKNOWLEDGEMENT),
            schema=_schema(request.slots),
            schema_name="profile",
            max_output_tokens=OUTPUT_TOKENS,
        )
        slots = {slot.name: slot for slot in request.slots}
        entries = answer.data.get("values")
        found = [_read(one, slots, ids) for one in entries] if isinstance(entries, list) else []
        # A slot that is named twice: the first counts.
        first: dict[str, Derived] = {}
        for one in found:
            if one is not None:
                first.setdefault(one.slot, one)
        return Derivation(list(first.values()), answer.use)


def _rendered(request: ProfileRequest) -> str:
    return "\n".join(
        line(
            kind="memory",
            id=f"m{number}",
            type=one.memory_type,
            since=day(one.since),
            text=cut(one.content, LONGEST_MEMORY),
        )
        for number, one in enumerate(request.known, 1)
    )


def _schema(slots: Sequence[Slot]) -> JsonSchema:
    texts = {"type": "array", "items": {"type": "string"}}
    members: dict[str, Any] = {
        "slot": {"type": "string", "enum": [slot.name for slot in slots]},
        "text": {"type": ["string", "null"]},
        "entries": {"type": ["array", "null"], "items": {"type": "string"}},
        "evidence": texts,
    }
    return _object(values={"type": "array", "items": _object(**members)})


def _object(**members: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _read(one: Any, slots: Mapping[str, Slot], ids: Mapping[str, str]) -> Derived | None:
    """A value of the answer; None for what is none, or stands on nothing that was shown."""
    if not isinstance(one, Mapping) or not isinstance(one.get("slot"), str):
        return None
    slot = slots.get(one["slot"].strip())
    evidence = one.get("evidence")
    if slot is None or not isinstance(evidence, list):
        return None
    known = [ids[name] for name in map(_short, evidence) if name in ids]
    value = _value(slot, one)
    if not known or not value:
        return None
    return Derived(slot.name, value, tuple(dict.fromkeys(known)))


def _short(value: Any) -> str:
    """Small models write 3 for m3."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"m{value}"
    return value.strip() if isinstance(value, str) else ""


def _value(slot: Slot, one: Mapping[str, Any]) -> SlotValue | None:
    """Text or entries, wherever the model wrote them."""
    text, entries = one.get("text"), one.get("entries")
    if slot.kind == "list":
        given = entries if isinstance(entries, list) else [text]
        return [storable(each) for each in given if isinstance(each, str) and storable(each)]
    if isinstance(text, str):
        return storable(text)
    if isinstance(entries, list) and all(isinstance(each, str) for each in entries):
        return storable(" ".join(entries))
    return None
