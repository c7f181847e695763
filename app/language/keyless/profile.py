"""The keyless profiler: quotes what memories say, chosen by attribute, type and age.

Whole statements stay as they were remembered, in their language, and each in one place only; single
values are what the reader of attributes or a frame of words finds. Nothing is made up, so each
value names its memories.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Final

from app.language.keyless import profile_words as words
from app.language.keyless.attributes import attributes_of, gives
from app.language.keyless.relations import relations_of
from app.language.llm.profiler import (
    Derivation,
    DerivedValue,
    ProfileMemory,
    ProfileRequest,
    Slot,
    SlotValue,
)
from app.language.text.normal_forms import has_cjk
from app.language.text.offload import read_text
from app.language.text.periods import written_day
from app.language.text.pieces import ended, sentences
from app.language.text.terms import terms
from app.language.text.time_expressions import find_dates

RECENT: Final = timedelta(days=90)
EARLIER: Final = timedelta(days=365)
ON_MIND: Final = timedelta(days=60)

_WISHES: Final = frozenset({"preference", "constraint", "correction", "habit"})
_STABLE: Final = frozenset({"origin", "birthday", "education", "nationality", "school"})
_WORKING: Final = frozenset({"occupation", "employer", "team", "workplace"})
_PERSONAL: Final = frozenset({"residence", "partner", "marital_status", "language", "diet", "pet"})
_LASTS: Final = frozenset({"fact", "skill", "knowledge"})
_PASSES: Final = frozenset({"event", "decision", "context", "correction", "experience", "goal"})


class RulesProfiler:
    """Quotes. Without a state of its own; nothing leaves the process."""

    name: Final = "rules/2"
    model: Final = None
    prompt_version: Final = None

    async def derive(self, request: ProfileRequest) -> Derivation:
        """As the port says; never fails, costs nothing."""
        characters = sum(len(memory.content) for memory in request.known)
        return Derivation(await read_text(characters, _derived, request))


class _Reading:
    """The memories of a request, the newest first, what their words give, and what is quoted."""

    def __init__(self, request: ProfileRequest) -> None:
        known = [memory for memory in request.known if _counts(memory, request)]
        self.known = sorted(
            known, key=lambda memory: (memory.since, memory.memory_id), reverse=True
        )
        # Once, however many slots ask.
        self.given = {memory.memory_id: attributes_of(memory.content) for memory in known}
        self.places = {memory.memory_id: self._places(memory, request) for memory in known}
        self.quoted: set[str] = set()

    def _places(self, memory: ProfileMemory, request: ProfileRequest) -> set[str]:
        """The slots that a memory may be quoted in."""
        given = self.given[memory.memory_id]
        attribute = (memory.attribute or (given[0].name if given else "")).rpartition(".")[2]
        kind, age = memory.memory_type, request.now - memory.since
        told, passes = kind in {"fact", "context", "event", "skill"}, _PASSES | {"fact"}
        fitting = {
            "attributes.background": attribute in _STABLE
            or (told and words.STUDY.search(memory.content)),
            "sections.work_context": attribute in _WORKING
            or (told and kind != "event" and words.WORK.search(memory.content)),
            "attributes.characteristics": kind == "habit",
            "sections.personal_context": attribute in _PERSONAL or kind in {"preference", "habit"},
            "sections.top_of_mind": age <= ON_MIND
            and (kind in {"goal", "context"} or (kind == "event" and age <= timedelta())),
            "sections.recent_months": kind in passes and age < RECENT,
            "sections.earlier_context": kind in passes and RECENT <= age < EARLIER,
            "sections.long_term_background": kind in _LASTS and age >= EARLIER,
            "attributes.project_goal": kind == "goal",
            "attributes.constraints": kind == "constraint",
            "attributes.team_conventions": kind in {"habit", "preference"},
            "attributes.current_phase": kind == "context",
        }
        return {name for name, fits in fitting.items() if fits}


def _counts(memory: ProfileMemory, request: ProfileRequest) -> bool:
    """Whether it is about the user and holds now, or is an event to come."""
    state = memory.state(request.now)
    planned = state == "later" and memory.memory_type == "event"
    return not request.is_others(memory) and (state in {None, "overdue"} or planned)


Filled = tuple[SlotValue, Sequence[ProfileMemory]]
Filler = Callable[[Slot, _Reading], Filled | None]
Reader = Callable[[ProfileMemory, _Reading], str | None]


def _derived(request: ProfileRequest) -> list[DerivedValue]:
    reading = _Reading(request)
    order = {name: place for place, name in enumerate(_FILLERS, start=1)}
    found = {}
    # What an application asks for by name comes first, since a statement is quoted once.
    for slot in sorted(request.slots, key=lambda slot: order.get(slot.name, 0)):
        filled = _FILLERS.get(slot.name, _custom)(slot, reading)
        if filled is not None:
            value, known = filled
            ids = dict.fromkeys(memory.memory_id for memory in known)
            found[slot.name] = DerivedValue(slot.name, value, tuple(ids))
    return [found[slot.name] for slot in request.slots if slot.name in found]


def _newest(read: Reader) -> Filler:
    """What the newest memory gives that gives something."""

    def fill(_: Slot, reading: _Reading) -> Filled | None:
        found = ((read(memory, reading), [memory]) for memory in reading.known)
        return next(((value, known) for value, known in found if value), None)

    return fill


def _given(*names: str, wished: bool = False) -> Reader:
    """The value of one of these attributes; only what is so, unless it may be wished."""

    def read(memory: ProfileMemory, reading: _Reading) -> str | None:
        plain = wished or gives(memory.memory_type, names[0])
        given = reading.given[memory.memory_id] if plain else ()
        return next((each.value for each in given if each.name in names), None)

    return read


def _wish(table: words.Choices) -> Reader:
    """The choice that a wish about answers names."""

    def read(memory: ProfileMemory, _: _Reading) -> str | None:
        said = memory.content
        if memory.memory_type not in _WISHES or not words.ANSWERS.search(said):
            return None
        named = (name for name, pattern in table if pattern.search(said))
        return None if words.DENIED.search(said) else next(named, None)

    return read


def _listed(read: Callable[[str], Iterable[str]]) -> Filler:
    """What memories name as they are, those of the newest memory first."""

    def fill(slot: Slot, reading: _Reading) -> Filled | None:
        values: dict[str, ProfileMemory] = {}
        for memory in reading.known:
            if memory.memory_type not in {"goal", "event"} and not words.DENIED.search(
                memory.content
            ):
                for name in read(memory.content):
                    values.setdefault(name, memory)
        kept = list(values)[: slot.entries]
        return (kept, [values[name] for name in kept]) if kept else None

    return fill


def _named(frame: re.Pattern[str]) -> Callable[[str], Iterator[str]]:
    def read(text: str) -> Iterator[str]:
        for match in frame.finditer(text):
            parts = words.BETWEEN.split(match["names"] or match["han"])
            yield from (part.strip() for part in parts if part.strip())

    return read


def _tools(text: str) -> Iterator[str]:
    return (relation.destination for relation in relations_of(text) if relation.relation == "uses")


def _custom(slot: Slot, reading: _Reading) -> Filled | None:
    """A slot that an application has named: by the attribute, else by the words of its name."""
    topic, _, sub_topic = slot.name.removeprefix("slots.").partition(".")
    attributes = {f"{topic}.{sub_topic}", f"user.{sub_topic}", f"user.{topic}"}
    wanted = frozenset(terms(sub_topic.replace("_", " ")))
    chosen = (
        memory
        for memory in reading.known
        if memory.attribute in attributes or (wanted and wanted <= frozenset(terms(memory.content)))
    )
    return _quoted(chosen, slot, reading, 5)


def _quotes(most: int | None = None) -> Filler:
    """Memories that belong there, as they stand: those that give an attribute, then the newest."""

    def fill(slot: Slot, reading: _Reading) -> Filled | None:
        chosen = [
            memory for memory in reading.known if slot.name in reading.places[memory.memory_id]
        ]
        chosen.sort(key=lambda memory: not (memory.attribute or reading.given[memory.memory_id]))
        return _quoted(chosen, slot, reading, most or slot.sentences or slot.entries)

    return fill


def _quoted(
    chosen: Iterable[ProfileMemory], slot: Slot, reading: _Reading, most: int
) -> Filled | None:
    """The first that are quoted nowhere else; what does not fit whole is left out."""
    kept: list[ProfileMemory] = []
    for memory in chosen:
        if len(kept) < most and memory.memory_id not in reading.quoted:
            text = memory.cited if slot.kind == "list" else _text([*kept, memory])
            fits = slot.sentences is None or len(sentences(text)) <= slot.sentences
            kept += [memory] if fits and len(text) <= slot.characters else []
    reading.quoted.update(memory.memory_id for memory in kept)
    if not kept:
        return None
    return ([memory.cited for memory in kept] if slot.kind == "list" else _text(kept)), kept


def _text(known: Sequence[ProfileMemory]) -> str:
    """Sentences one after another; of somebody's own words it is said once whose they are.

    Before what goes by a date stands the day it was said: "3 May 2025: I moved last month."
    """
    text = ""
    by_speaker = sorted(known, key=lambda memory: memory.speaker or "")
    for speaker, said in groupby(by_speaker, lambda memory: memory.speaker):
        day = ""
        for number, memory in enumerate(said):
            quote = ended(memory.content)
            if speaker is not None and memory.said_at is not None:
                own_day = f"{written_day(memory.said_at)}: "
                dated = day or memory.memory_type == "event" or find_dates(quote, memory.said_at)
                if dated and own_day != day:
                    day = own_day
                    quote = day + quote
            if speaker is not None and number == 0:
                own = f"{speaker}的原话：" if has_cjk(quote) else f"In {speaker}'s own words: "
                quote = own + quote
            text += quote if not text or text.endswith("。") else f" {quote}"
    return text


_FILLERS: Final[dict[str, Filler]] = {
    "attributes.username": _newest(_given("user.name", "user.nickname", wished=True)),
    "attributes.profession": _newest(_given("user.occupation")),
    "attributes.communication_style": _newest(_wish(words.STYLES)),
    "attributes.response_format": _newest(_wish(words.FORMATS)),
    "attributes.language_preference": _newest(_wish(words.LANGUAGES)),
    "attributes.expertise_areas": _listed(_named(words.EXPERTISE)),
    "attributes.programming_languages": _listed(_named(words.CODES)),
    "attributes.frequently_used_tools": _listed(_tools),
    "attributes.background": _quotes(3),
    "sections.work_context": _quotes(),
    "attributes.characteristics": _quotes(3),
    "sections.personal_context": _quotes(),
    "sections.top_of_mind": _quotes(),
    "sections.recent_months": _quotes(),
    "sections.earlier_context": _quotes(),
    "sections.long_term_background": _quotes(),
    "attributes.project_goal": _quotes(1),
    "attributes.tech_stack": _listed(_named(words.USES)),
    "attributes.constraints": _quotes(),
    "attributes.team_conventions": _quotes(),
    "attributes.current_phase": _quotes(1),
}
"""In the order in which they are filled: a statement stands where it fits first."""
