"""The keyless profiler: quotes what memories say, chosen by attribute, type and age.

Whole sentences stay as they were remembered, in their language; single values are what the
attribute reader or a table of words finds. Nothing is made up, so each value names its memories.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from app.language.keyless.attributes import Attribute, attribute_of
from app.language.keyless.profile_words import (
    AMBIGUOUS,
    ANSWERS,
    CODES,
    DENIED,
    EXPERTISE,
    EXPERTISE_SPLIT,
    FORMATS,
    IN_LANGUAGE,
    LANGUAGES,
    PHASE,
    PROGRAMMING_LANGUAGES,
    STACK,
    STUDY,
    STYLES,
    TOOLS,
    USES,
    WORK,
)
from app.language.llm.profiler import (
    Derivation,
    DerivedValue,
    KnownMemory,
    ProfileRequest,
    Slot,
    SlotValue,
)
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk, normalise
from app.language.text.offload import read_text
from app.language.text.terms import terms

RECENT: Final = timedelta(days=90)
EARLIER: Final = timedelta(days=365)
ON_MIND: Final = timedelta(days=60)

_WISHES: Final = frozenset({"preference", "constraint", "correction", "habit"})
_STABLE: Final = frozenset({"origin", "birthday", "age", "education", "nationality"})
_WORKING: Final = frozenset({"occupation", "employer", "team", "workplace"})
_PERSONAL: Final = frozenset({"residence", "partner", "marital_status", "language", "diet", "pet"})


@dataclass(frozen=True, slots=True)
class _Read:
    """A request, and the attribute and value that the words of each memory give."""

    known: Sequence[KnownMemory]
    given: Mapping[str, Attribute | None]
    now: datetime

    @classmethod
    def of(cls, request: ProfileRequest) -> "_Read":
        # A millisecond each: once, however many slots ask.
        given = {one.memory_id: attribute_of(one.content) for one in request.known}
        return cls(request.known, given, request.now)

    def attribute(self, one: KnownMemory) -> str:
        """Its last word, as `residence`: as it was stored, else as its words read."""
        if one.attribute:
            return one.attribute.rpartition(".")[2]
        read = self.given[one.memory_id]
        return read[0].rpartition(".")[2] if read else ""


Filled = tuple[SlotValue, Sequence[KnownMemory]]
Filler = Callable[[Slot, _Read], Filled | None]


class RulesProfiler:
    """Quotes. Without a state of its own; nothing leaves the process."""

    @property
    def name(self) -> str:
        return "rules/1"

    @property
    def model(self) -> None:
        return None

    async def derive(self, request: ProfileRequest) -> Derivation:
        """As the port says; never fails, costs nothing."""
        characters = sum(len(one.content) for one in request.known)
        return Derivation(await read_text(characters, _derived, request))


def _derived(request: ProfileRequest) -> list[DerivedValue]:
    read = _Read.of(request)
    found = []
    for slot in request.slots:
        filled = _FILLERS.get(slot.name, _custom)(slot, read)
        if filled is not None and filled[0]:
            value, known = filled
            found.append(DerivedValue(slot.name, value, tuple(one.memory_id for one in known)))
    return found


def _newest(known: Iterable[KnownMemory]) -> list[KnownMemory]:
    return sorted(known, key=lambda one: (one.since, one.memory_id), reverse=True)


def _single(name: str) -> Filler:
    """The value of an attribute, of the newest memory that gives it."""

    def fill(_: Slot, request: _Read) -> Filled | None:
        for one in _newest(request.known):
            read = request.given[one.memory_id]
            if read and read[0] == f"user.{name}" and one.memory_type != "goal":
                return read[1], [one]
        return None

    return fill


def _language(slot: Slot, request: _Read) -> Filled | None:
    found = _single("language")(slot, request)
    if found is not None and (tag := LANGUAGES.get(normalise(str(found[0])))):
        return tag, found[1]
    for one in _newest(request.known):
        wished = one.memory_type in _WISHES and ANSWERS.search(one.content)
        named = IN_LANGUAGE.search(one.content.lower())
        if wished and named and not DENIED.search(one.content):
            return LANGUAGES[named["name"]], [one]
    return None


def _choice(table: Sequence[tuple[str, re.Pattern[str]]]) -> Filler:
    """The newest wish about answers that names a choice."""

    def fill(_: Slot, request: _Read) -> Filled | None:
        for one in _newest(request.known):
            if (
                one.memory_type not in _WISHES
                or not ANSWERS.search(one.content)
                or DENIED.search(one.content)
            ):
                continue
            chosen = next((name for name, words in table if words.search(one.content)), None)
            if chosen:
                return chosen, [one]
        return None

    return fill


def _named(words: Sequence[str], *, uses: bool = False) -> Filler:
    """The words of a table that memories name, those of the newest memory first."""
    patterns = [(word, _pattern(word)) for word in words]

    def fill(slot: Slot, request: _Read) -> Filled | None:
        values: dict[str, KnownMemory] = {}
        for one in _newest(request.known):
            if one.memory_type in {"goal", "event"} or DENIED.search(one.content):
                continue
            if uses and not USES.search(one.content):
                continue
            for word, pattern in patterns:
                if word in AMBIGUOUS and not CODES.search(one.content):
                    continue
                if pattern.search(one.content):
                    values.setdefault(word, one)
        kept = list(values)[: slot.entries]
        return (kept, _once(values[word] for word in kept)) if kept else None

    return fill


def _pattern(word: str) -> re.Pattern[str]:
    if has_cjk(word):
        return lazy_pattern(re.escape(word))
    # Chinese stands right beside a name; a letter, a digit, + or # belongs to another one.
    return lazy_pattern(rf"(?<![A-Za-z0-9+#.-]){re.escape(word)}(?![A-Za-z0-9+#-])")


def _once(known: Iterable[KnownMemory]) -> list[KnownMemory]:
    return list({one.memory_id: one for one in known}.values())


def _expertise(slot: Slot, request: _Read) -> Filled | None:
    values: dict[str, KnownMemory] = {}
    for one in _newest(request.known):
        found = EXPERTISE.search(one.content)
        if found is None or DENIED.search(one.content) or one.memory_type == "goal":
            continue
        for part in EXPERTISE_SPLIT.split(found["area"] or found["gebiet"]):
            if part.strip():
                values.setdefault(part.strip(), one)
    kept = list(values)[: slot.entries]
    return (kept, _once(values[word] for word in kept)) if kept else None


def _quoted(choose: Callable[[KnownMemory, _Read], bool], *, most: int | None = None) -> Filler:
    """Memories as they stand, the newest first: one each."""

    def fill(slot: Slot, request: _Read) -> Filled | None:
        chosen = [one for one in _newest(request.known) if choose(one, request)]
        chosen = chosen[: most or slot.sentences or slot.entries or 3]
        if slot.kind == "list":
            return ([one.content for one in chosen], chosen) if chosen else None
        # What does not fit is left out here, so that no memory is named that does not stand there.
        fitting: list[KnownMemory] = []
        for one in chosen:
            if len(_joined([*fitting, one])) <= slot.characters:
                fitting.append(one)
        return (_joined(fitting), fitting) if fitting else None

    return fill


def _joined(known: Sequence[KnownMemory]) -> str:
    sentences = [_ended(one.content) for one in known]
    text = sentences[0]
    for sentence in sentences[1:]:
        text += sentence if text.endswith("。") else f" {sentence}"
    return text


def _ended(content: str) -> str:
    text = " ".join(content.split())
    if text.endswith((".", "!", "?", "。", "！", "？", "…")):
        return text
    return text + ("。" if has_cjk(text) else ".")


def _works(one: KnownMemory, request: _Read) -> bool:
    if request.attribute(one) in _WORKING:
        return True
    return one.memory_type in {"fact", "context", "skill"} and bool(WORK.search(one.content))


def _is_personal(one: KnownMemory, request: _Read) -> bool:
    if request.attribute(one) in _PERSONAL:
        return True
    return one.memory_type in {"preference", "habit"} and not _works(one, request)


def _on_mind(one: KnownMemory, request: _Read) -> bool:
    if request.now - one.since > ON_MIND:
        return False
    return one.memory_type in {"goal", "context"} or (
        one.memory_type == "event" and one.since >= request.now
    )


def _aged(least: timedelta, most: timedelta) -> Callable[[KnownMemory, _Read], bool]:
    def choose(one: KnownMemory, request: _Read) -> bool:
        told = one.memory_type in {
            "event", "decision", "context", "fact", "correction", "experience", "goal",
        }  # fmt: skip
        return told and least <= request.now - one.since < most

    return choose


def _lasts(one: KnownMemory, request: _Read) -> bool:
    if request.attribute(one) in _STABLE or STUDY.search(one.content):
        return True
    return one.memory_type in {"fact", "skill", "knowledge"} and request.now - one.since >= EARLIER


def _studied(one: KnownMemory, request: _Read) -> bool:
    return request.attribute(one) in _STABLE or bool(STUDY.search(one.content))


def _is(*types: str) -> Callable[[KnownMemory, _Read], bool]:
    return lambda one, _: one.memory_type in types


def _in_phase(one: KnownMemory, _: _Read) -> bool:
    return one.memory_type in {"context", "fact", "event"} and bool(PHASE.search(one.content))


def _custom(slot: Slot, request: _Read) -> Filled | None:
    """A slot that an application has named: by the attribute, else by the words of its name."""
    topic, _, sub_topic = slot.name.removeprefix("slots.").partition(".")
    wanted = frozenset(terms(sub_topic.replace("_", " ")))

    def chosen(one: KnownMemory, _: _Read) -> bool:
        if one.attribute in {f"{topic}.{sub_topic}", f"user.{sub_topic}", f"user.{topic}"}:
            return True
        return bool(wanted) and wanted <= frozenset(terms(one.content))

    return _quoted(chosen, most=5)(slot, request)


_FILLERS: Final[dict[str, Filler]] = {
    "attributes.username": _single("name"),
    "attributes.profession": _single("occupation"),
    "attributes.background": _quoted(_studied, most=3),
    "attributes.characteristics": _quoted(_is("habit"), most=3),
    "attributes.communication_style": _choice(STYLES),
    "attributes.response_format": _choice(FORMATS),
    "attributes.language_preference": _language,
    "attributes.expertise_areas": _expertise,
    "attributes.programming_languages": _named(PROGRAMMING_LANGUAGES),
    "attributes.frequently_used_tools": _named(TOOLS, uses=True),
    "sections.work_context": _quoted(_works),
    "sections.personal_context": _quoted(_is_personal),
    "sections.top_of_mind": _quoted(_on_mind),
    "sections.recent_months": _quoted(_aged(timedelta.min, RECENT)),
    "sections.earlier_context": _quoted(_aged(RECENT, EARLIER)),
    "sections.long_term_background": _quoted(_lasts),
    "attributes.project_goal": _quoted(_is("goal"), most=1),
    "attributes.tech_stack": _named(STACK),
    "attributes.constraints": _quoted(_is("constraint")),
    "attributes.team_conventions": _quoted(_is("habit", "preference")),
    "attributes.current_phase": _quoted(_in_phase, most=1),
}
