"""A profile as lines for a prompt: everything escaped, so that no value can end its line. Pure.

A line knows which memories its value was derived from, so that a context need not repeat them.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.language.text.pieces import ENDS, ended
from app.language.text.prompt_text import escape_line
from app.memory.profiles.slots import DECISIONS, PROJECT_SLOTS, USER_SLOTS

WISH: Final = "wish of the user"
PROJECT: Final = "project"

_ORDER: Final = {slot.name: place for place, slot in enumerate((*USER_SLOTS, *PROJECT_SLOTS))}
_CLOSED: Final = ("。", "！", "？")
"""Behind these no space follows."""


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """A line for a prompt.

    Args:
        says: the texts that it contains as they are.
        memory_ids: what they were derived from; none where a person wrote them.

    """

    text: str
    says: Sequence[str] = ()
    memory_ids: Collection[str] = ()

    def repeats(self, memory_id: str, content: str) -> bool:
        """Whether it was derived from a memory and says it in whole, word for word."""
        return memory_id in self.memory_ids and any(_says(content, text) for text in self.says)


@dataclass(frozen=True, slots=True)
class RenderedProfile:
    """The value of a slot, and the memories it was derived from."""

    value: Any
    memory_ids: Collection[str] = ()


def user_lines(
    values: Mapping[str, RenderedProfile], instructions: str | None, *, name: str | None = None
) -> list[ProfileLine]:
    """A user's values, short ones first, then the user's wishes, then the sections.

    Args:
        values: by their slots.
        name: the user's name where the prompt has it already.

    """
    ordered = _ordered(values)
    short = [item for item in ordered if not item[0].startswith("sections.")]
    long = [item for item in ordered if item[0].startswith("sections.")]
    lines = [
        _line(_title(slot), rendered)
        for slot, rendered in short
        if not (slot == "attributes.username" and rendered.value == name)
    ]
    # Line by line, so that a wish without room does not drop the others.
    lines += [ProfileLine(f"- {WISH}: {escape_line(wish)}") for wish in _lines(instructions)]
    return lines + [_line(_title(slot), rendered) for slot, rendered in long]


def project_lines(values: Mapping[str, RenderedProfile]) -> list[ProfileLine]:
    """A project's values, then its decisions, the newest first."""
    lines = [
        _line(f"{PROJECT} {_title(slot).removeprefix('project ')}", rendered)
        for slot, rendered in _ordered(values)
        if slot != DECISIONS
    ]
    decided = values.get(DECISIONS, RenderedProfile([]))
    return lines + [
        _decision(decision, decided.memory_ids)
        for decision in reversed(decided.value or [])
        if isinstance(decision, Mapping)
    ]


def _ordered(values: Mapping[str, RenderedProfile]) -> list[tuple[str, RenderedProfile]]:
    return sorted(values.items(), key=lambda item: (_ORDER.get(item[0], len(_ORDER)), item[0]))


def _title(slot: str) -> str:
    """`sections.work_context` reads "work context", `slots.diet.allergies` "diet allergies"."""
    return slot.partition(".")[2].replace(".", " ").replace("_", " ")


def _line(title: str, rendered: RenderedProfile) -> ProfileLine:
    value = rendered.value
    says = [value] if isinstance(value, str) else []
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        says, value = value, ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return ProfileLine(f"- {escape_line(title)}: {escape_line(text)}", says, rendered.memory_ids)


def _decision(entry: Mapping[str, Any], memory_ids: Collection[str]) -> ProfileLine:
    decision = str(entry.get("decision", ""))
    said = f"- {PROJECT} decision: {escape_line(decision)}"
    if entry.get("reason"):
        said += f" (because: {escape_line(str(entry['reason']))})"
    if entry.get("time"):
        said += f" ({str(entry['time'])[:10]})"
    return ProfileLine(said, [decision], memory_ids)


def _lines(text: str | None) -> Iterable[str]:
    return [line for line in (text or "").splitlines() if line.strip()]


def _says(content: str, said: str) -> bool:
    """Whether a text is equal to `content`, or contains it as whole sentences."""
    wanted, text = ended(content), ended(said)
    if not wanted:
        return False
    start = text.find(wanted)
    while start >= 0:
        before, after = text[:start].rstrip(), text[start + len(wanted) :]
        # Behind a colon stand somebody's own words.
        begins = not before or before.endswith((*ENDS, ":", "："))
        if begins and (not after or after[0] == " " or wanted.endswith(_CLOSED)):
            return True
        start = text.find(wanted, start + 1)
    return False
