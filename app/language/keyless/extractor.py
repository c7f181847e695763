"""The keyless extractor: what people tell, in their own words, selected and never rewritten.

Deterministic. Each language finds clauses and gives them cues; the classifier says how sure it is
that a clause is worth remembering, and that is the confidence of the statement. What is less sure
than its FLOORS is no memory; it is still found as a piece of what was said. A prompt
is ignored: rules cannot be told anything.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from app.language.keyless import kinds
from app.language.keyless.attributes import attribute_of, attributes_of, gives
from app.language.keyless.chinese_clauses import chinese_clauses
from app.language.keyless.classifier import classifier
from app.language.keyless.clauses import ASKED, LONGEST_LEAD, Clause
from app.language.keyless.english_clauses import english_clauses
from app.language.keyless.mistakes import experience, mistake
from app.language.keyless.relations import relations_of
from app.language.llm.extractor import (
    ConversationTurn,
    Extraction,
    ExtractionRequest,
    Proposed,
    Scope,
)
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import normalise
from app.language.text.time_expressions import validity

FLOORS: Final = {"english": 0.82, "chinese": 0.7}
"""What is proposed is at least so sure. Chosen on half of the marked messages, and on statements of
further ones that were judged (benchmarks/results/extraction_judged.md)."""

AMONG_PEOPLE: Final = 0.7
"""The floor of English where several people talk, by their names; cues count otherwise there."""

WHOLE: Final = {"english": 6.0, "chinese": 1.0}
"""How much greater the odds are of a clause that is most of a message ("I'm a nurse."). On the
held-out half of the labelled set of short messages English recall is 0.72 with 6 and 0.76 with 8,
at a precision of 0.88 and 0.87; among people 8 lets in more that is wrong than right."""

MOST: Final = 0.45
NEARLY_ALL: Final = 0.8
SHORT: Final = 100
"""Shares of a message that its one clause takes, or its two where it has so few characters and
nobody's name, to be counted as `WHOLE`: "My brother Tom lives in Berlin. I work at Siemens."."""

HANDED_OVER: Final = {"english": 12.0, "chinese": 3.5}
"""How much greater the odds are of one clause that is given alone to be remembered. In English
twice as great as of a whole message."""

ALONE: Final = 0.93
"""What is less sure is kept together with the clause before it in its sentence, for it may lack
what it is about ("I'm waiting for a decision by July 1")."""

TOLD: Final = 0.56
"""What goes before is at least so sure, else it is a question or a doubt."""

JOINED: Final = {"english": 1.5, "chinese": 3.5}
"""How much greater the odds of the two are. These three were chosen with the floors."""

INLINE_CHARACTERS: Final = 2_000
"""Characters that are read on the event loop; they take some ten milliseconds at worst."""

MENDED: Final = "correction"
_DATELESS: Final = {"user.birthday", "user.age", "user.name"}
_UNDATED: Final = {"goal", "habit", "preference", "skill", "constraint"}

READER: Final = "rules/5"
"""The name and version of the reader: `kemem reread` goes by it, so it is raised whenever the
weights or the rules change what is read. A test compares what is read of labelled lines."""

Clauses = Callable[[str, str | None], list[Clause]]
READERS: Final[dict[str, Clauses]] = {"english": english_clauses, "chinese": chinese_clauses}

_HAN: Final = lazy_pattern(r"[\u3400-\u9fff]")
_LATIN_WORD: Final = lazy_pattern(r"[A-Za-zÀ-ÿ][\w'’-]*")
_SENTENCE: Final = lazy_pattern(
    r"[^.!?。！？；\n]*(?:[.!?]+(?:\s+|$|(?=[\u3400-\u9fff]))|[。！？；\n]+|[.!?]|$)"
)


class RulesExtractor:
    """Selects clauses. Holds nothing, so one instance may serve every task and thread."""

    name: Final = READER
    model: Final = None
    prompt_version: Final = None

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """Proposals in the order of what was said; the same request gives the same ones."""
        return Extraction(proposals=tuple(await _proposals(request)))

    async def summarise(self, request: ExtractionRequest) -> Extraction:
        """What was decided, planned and set right, in the user's words; nothing if nothing was."""
        found = experience(await _proposals(request))
        return Extraction(proposals=(found,) if found else ())


async def _proposals(request: ExtractionRequest) -> list[Proposed]:
    if sum(len(turn.content) for turn in request.turns) <= INLINE_CHARACTERS:
        return propose(request)
    return await asyncio.to_thread(propose, request)


def propose(request: ExtractionRequest) -> list[Proposed]:
    """What the turns say, once of each speaker, without what stood in the model's context."""
    recalled = {normalise(each).rstrip(" .。") for each in request.recalled}
    seen: set[tuple[str | None, str]] = set()
    proposals: list[Proposed] = []
    earlier: list[str] = []
    names = {turn.name for turn in request.turns if turn.role == "user" and turn.name}
    for turn in request.turns:
        if turn.role == "user" and not turn.context:
            handed_over = request.handed_over
            for each in read(turn, earlier, among=len(names) > 1, handed_over=handed_over):
                key = normalise(each.content).rstrip(" .。")
                if key not in recalled and (turn.name, key) not in seen:
                    seen.add((turn.name, key))
                    proposals.append(replace(each, scope=_scope(each, request.scopes)))
        earlier.insert(0, turn.content)
    return proposals


def read(
    turn: ConversationTurn,
    earlier: Sequence[str],
    *,
    among: bool = False,
    handed_over: bool = False,
) -> Iterator[Proposed]:
    """Proposals of one turn; `earlier` is what was said before it, the last one first.

    Several people talk if `among`.
    """
    before = earlier[0] if earlier else None
    floors = FLOORS | {"english": AMONG_PEOPLE} if among else FLOORS
    for language, text in by_language(turn.content):
        judged = classifier(language)
        kept: list[tuple[Clause, float, str]] = []
        clauses = READERS[language](text, before)
        likely = 0.0
        said = sum(clause.end - clause.start for clause in clauses) / max(len(text), 1)
        lone = len(clauses) == 1 and (handed_over or said > MOST)
        whole_message = lone or (
            turn.name is None and len(clauses) == 2 and said >= NEARLY_ALL and len(text) <= SHORT
        )
        for place, clause in enumerate(clauses):
            sure = 1.0 if clause.cues.get(ASKED) else judged.probability(clause, among_people=among)
            if whole_message and "points" not in clause.cues:
                sure = _more_likely(
                    sure, (HANDED_OVER if handed_over and lone else WHOLE)[language]
                )
            told, likely = likely >= TOLD, sure
            whole, explained_by = clause, clause.lead
            joint = told and 0 < len(clause.aside) <= LONGEST_LEAD
            if joint and sure < ALONE and not attribute_of(clause.text):
                whole = replace(clause, lead=clause.lead or clause.aside)
                explained_by = clause.lead or clauses[place - 1].text
                sure = _more_likely(sure, JOINED[language])
            if sure >= floors[language]:
                kept.append((whole, round(sure, 3), explained_by))
        for clause, sure in _told_once(kept):
            yield _proposed(clause, sure, text, turn, earlier)


def _told_once(kept: Sequence[tuple[Clause, float, str]]) -> list[tuple[Clause, float]]:
    """Without the clauses that were put in front of those that they explain. Each comes with the
    text of the clause that explains it.
    """
    explaining: set[str] = set()
    found: list[tuple[Clause, float]] = []
    for clause, sure, explained_by in reversed(kept):
        if clause.lead or clause.text not in explaining:
            found.append((clause, sure))
        explaining.add(explained_by)
    return found[::-1]


def _more_likely(probability: float, factor: float) -> float:
    """The probability where more clauses are worth keeping: the odds times a factor."""
    odds = factor * probability
    return odds / (odds + 1 - probability)


def by_language(text: str) -> Iterator[tuple[str, str]]:
    """A text in runs of sentences of one language."""
    if not (_HAN.search(text) and _LATIN_WORD.search(text)):
        yield language_of(text), text
        return
    sentences = [each for each in _SENTENCE.findall(text) if each]
    for language, run in groupby(sentences, language_of):
        yield language, "".join(run)


def language_of(text: str) -> str:
    """Chinese with some Latin words is Chinese, English with a Chinese name in it English."""
    chinese = len(_HAN.findall(text)) > len(_LATIN_WORD.findall(text))
    return "chinese" if chinese else "english"


def _proposed(
    clause: Clause, sure: float, text: str, turn: ConversationTurn, earlier: Sequence[str]
) -> Proposed:
    content, kind = clause.content, kinds.memory_type(clause.text)
    given = attribute_of(content)
    if given and kind in {"event", "habit"}:
        # Where somebody lives or works now is a fact since then, not a thing of the past.
        kind = "fact"
    attribute = given[0] if given and (gives(kind, given[0]) or given[0] == "user.name") else None
    presupposed = "inside" in clause.cues
    wrong = None if presupposed else mistake(text, clause, earlier)
    if wrong:
        kind = MENDED
    retracts = not (wrong or presupposed) and kinds.is_retraction(clause.text)
    begin = end = None
    if kind not in _UNDATED and attribute not in _DATELESS:
        began = any(each.began for each in attributes_of(content))
        begin, end = validity(content, turn.said_at, began=began)
    return Proposed(
        content=content,
        memory_type=kind,
        confidence=sure,
        evidence=(turn.message_id,),
        scope="project" if kinds.is_of_project(content) else "user",
        attribute=attribute,
        valid_from=begin,
        valid_to=end,
        source_error=wrong,
        retracts=retracts,
        expected_valid_days=kinds.expected_valid_days(kind, clause.text, turn.said_at),
        relations=() if presupposed else relations_of(content, retracts=retracts),
        quoted=not kinds.is_third_person(content),
        presupposed=presupposed,
    )


def _scope(proposed: Proposed, allowed: Sequence[Scope]) -> Scope:
    if proposed.scope in allowed or not allowed:
        return proposed.scope
    return "user" if "user" in allowed else allowed[0]
