"""The places of a profile, and what may stand in each. Pure.

A user may write longer than a job: what a person wants to say is theirs, what a job writes is
held to the lengths of the field.
"""

from collections.abc import Sequence
from typing import Any, Final

from app.identity.agents.config import ProfileSlot
from app.language.llm.profiler import Slot, SlotValue
from app.language.text.pieces import cut_at_sentence, sentences

ATTRIBUTES: Final = "attributes"
SECTIONS: Final = "sections"
SLOTS: Final = "slots"
DECISIONS: Final = "key_decisions"
INSTRUCTIONS: Final = "instructions"

SECTION_CHARACTERS: Final = 2_000
"""Most that a user writes into a section; a job writes sentences by number."""

TEXT_CHARACTERS: Final = 1_000
ENTRIES: Final = 50
ENTRY_CHARACTERS: Final = 100
INSTRUCTION_CHARACTERS: Final = 10_000
MOST_DECISIONS: Final = 50

_DERIVED_ENTRIES: Final = 20

COMMUNICATION_STYLES: Final = ("concise", "detailed", "technical")
RESPONSE_FORMATS: Final = ("markdown", "plain", "code")


def _text(name: str, about: str, characters: int = 300) -> Slot:
    return Slot(f"{ATTRIBUTES}.{name}", "text", about, characters=characters)


def _choice(name: str, about: str, choices: tuple[str, ...]) -> Slot:
    return Slot(f"{ATTRIBUTES}.{name}", "choice", about, choices=choices, characters=20)


def _list(name: str, about: str, characters: int = ENTRY_CHARACTERS) -> Slot:
    return Slot(
        f"{ATTRIBUTES}.{name}", "list", about, entries=_DERIVED_ENTRIES, characters=characters
    )


def _section(name: str, about: str, most: int) -> Slot:
    # The length of a long sentence.
    return Slot(f"{SECTIONS}.{name}", "section", about, sentences=most, characters=most * 250)


LANGUAGE: Final = f"{ATTRIBUTES}.language_preference"

USER_SLOTS: Final = (
    _text("username", "What the user is called.", 255),
    _text("background", "Where the user comes from, in origin and education.", 600),
    _text("profession", "What the user does for a living now, in a few words."),
    _text("characteristics", "How the user is and usually acts.", 600),
    _choice("communication_style", "How the user wants to be talked to.", COMMUNICATION_STYLES),
    _choice("response_format", "The form in which the user wants answers.", RESPONSE_FORMATS),
    _text("language_preference", "A BCP 47 tag of the language the user wants: zh-CN, en, ja.", 35),
    _list("programming_languages", "Programming languages the user works with."),
    _list("frequently_used_tools", "Tools the user works with often."),
    _list("expertise_areas", "Fields the user is an expert in, but neither languages nor tools."),
    _section(
        "work_context", "Of now: role, company, main projects and what they are built with.", 3
    ),
    _section("personal_context", "Of now: home, people, health, languages, interests.", 2),
    _section(
        "top_of_mind",
        "Three to five concerns of now, a sentence each: open goals, deadlines with their dates, "
        "what begins soon.",
        5,
    ),
    _section("recent_months", "What happened or ended in the last three months, with dates.", 6),
    _section("earlier_context", "What happened or ended three to twelve months ago.", 5),
    _section("long_term_background", "What has been so for years, and what ended long ago.", 4),
)

HISTORY: Final = frozenset(
    f"{SECTIONS}.{name}" for name in ("recent_months", "earlier_context", "long_term_background")
)
"""Where what has ended may be told."""

PROJECT_SLOTS: Final = (
    _text("project_goal", "What the project wants to reach.", 600),
    _list("tech_stack", "What it is built with."),
    _list("constraints", "What must or must not be.", 300),
    _list("team_conventions", "How the team works and writes.", 300),
    _text("current_phase", "Where the project stands now.", 300),
)


def custom(slot: ProfileSlot) -> Slot:
    """A slot that an agent has named."""
    about = f"{slot.topic} / {slot.sub_topic}: {slot.description}"
    return Slot(slot.name, "text", about, characters=slot.max_chars)


def user_slots(own: Sequence[ProfileSlot]) -> list[Slot]:
    """All slots that a job derives for a user whose agent has these slots of its own."""
    return [*USER_SLOTS, *map(custom, own)]


def conformed(slot: Slot, value: Any) -> SlotValue | None:
    """What a job may store of a value, cut to its length; None for what is no value of the slot."""
    if slot.kind == "list":
        entries = [_cut(entry, slot.characters) for entry in value] if _is_texts(value) else []
        return list(dict.fromkeys(entry for entry in entries if entry))[: slot.entries] or None
    if not isinstance(value, str) or not value.strip():
        return None
    text = " ".join(value.split())
    if slot.kind == "choice":
        return text.lower() if text.lower() in slot.choices else None
    if slot.kind == "section":
        text = _sentences(text, slot.sentences or 1)
    if slot.name == LANGUAGE and not is_language_tag(text):
        return None
    return _cut(text, slot.characters) or None


def is_language_tag(text: str) -> bool:
    """Whether it has the form of a BCP 47 tag: language, then script, region, variants."""
    language, *rest = text.split("-")
    if not (language.isascii() and language.isalpha() and 2 <= len(language) <= 3):
        return False
    script = region = False
    for part in rest:
        if not (part.isascii() and part.isalnum()):
            return False
        if len(part) == 4 and part.isalpha() and not (script or region):
            script = True
        elif not region and (
            (len(part) == 2 and part.isalpha()) or (len(part) == 3 and part.isdigit())
        ):
            region = True
        elif not (5 <= len(part) <= 8 or (len(part) == 4 and part[0].isdigit())):
            return False
    return len(text) <= 35


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _cut(text: str, characters: int) -> str:
    return cut_at_sentence(" ".join(text.split()), lambda part: len(part) <= characters)[0]


def _sentences(text: str, most: int) -> str:
    """The first sentences, as they stand."""
    if len(sentences(text)) <= most:
        return text
    return cut_at_sentence(text, lambda part: len(sentences(part)) <= most)[0]
