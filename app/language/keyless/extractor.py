"""The keyless extractor: statements of the user by grammar, in English and Chinese.

Deterministic. It reads what people say plainly about themselves, their people and their
projects, and of others by name, and prefers silence to a guess. `ExtractionRequest.prompt` is
ignored: rules cannot be told anything.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from app.language.keyless import chinese, english
from app.language.keyless.assistant import (
    MAX_CLAIM,
    affirmed,
    claims,
    confirmable,
    in_first_person,
)
from app.language.keyless.attributes import attribute_of, gives
from app.language.keyless.corrections import corrected
from app.language.keyless.dates import validity
from app.language.keyless.english_answers import answered
from app.language.keyless.english_corrections import (
    elliptical,
    slip,
    spoken_by_assistant,
    spoken_by_user,
)
from app.language.keyless.english_people import person_in
from app.language.keyless.experience import experience
from app.language.keyless.languages import by_language, is_chinese
from app.language.keyless.patterns import compiled
from app.language.keyless.relations import relations_of
from app.language.keyless.relations_told import told_of_others
from app.language.keyless.statements import CONFIRMED, Statement
from app.language.keyless.written_dates import with_written_dates
from app.language.llm.extractor import (
    ConversationTurn,
    Extraction,
    ExtractionRequest,
    Proposed,
    Scope,
)
from app.language.text.normal_forms import has_cjk, normalise

MAX_TURN: Final = 20_000
"""Characters of a turn that are read: more is a document, and costs a millisecond a page."""

INLINE_CHARACTERS: Final = 500
"""Characters that are read on the event loop; they take some ten milliseconds at worst."""

_CHANGES = compiled(
    r"""
    \b(?:
        moved|relocated|joined|start(?:ed|ing|s)?|switched|changed|became|got|married|quit|
        stopped|left|since|been|turned|went|lives?|works?|living|working|decided|chose|chosen|
        adopted|bought|sold|retired|hired|laid|divorced|from \d{4}
    )\b|
    搬|入职|加入|跳槽|离职|辞|结婚|领证|离婚|换|开始|戒|成为|移民|毕业|退休|住|定居|在\S+(?:工作|上班|读|当|做)|起|以来|自从|从|买|卖|决定|选|养|
    开了|怀孕|确诊
    """,
)
_AHEAD: Final = compiled(
    r"\b(?:turning|turns|will|going to|due|getting|wants|plans)\b|将|要|打算|准备|计划"
)
_DATELESS: Final = {"user.birthday", "user.age", "user.name"}


class RulesExtractor:
    """`rules/1`. Holds nothing, so one instance may serve every task and thread."""

    name: Final = "rules/1"
    model: Final = None
    prompt_version: Final = None

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """Proposals in the order of what was said; the same request gives the same ones."""
        return Extraction(proposals=tuple(await _proposals(request)))

    async def summarise(self, request: ExtractionRequest) -> Extraction:
        """What was decided, planned and set right, in the user's words; nothing if nothing was."""
        found = experience(request.turns, await _proposals(request))
        return Extraction(proposals=(found,) if found else ())


async def _proposals(request: ExtractionRequest) -> list[Proposed]:
    if sum(len(turn.content) for turn in request.turns) <= INLINE_CHARACTERS:
        return propose(request)
    return await asyncio.to_thread(propose, request)


def propose(request: ExtractionRequest) -> list[Proposed]:
    """What the turns say, without what was said before or stood in the model's context."""
    recalled = {_key(each) for each in request.recalled}
    proposals: list[Proposed] = []
    seen: set[str] = set()
    known: list[Statement] = []
    before = _Before()
    for turn in request.turns:
        if turn.role == "assistant":
            before = _Before.of_assistant(turn)
            continue
        for each in _of_turn(turn, before, known):
            key = _key(each.content)
            if each.retracts and key in seen:
                proposals = [one for one in proposals if one.content != each.content]
                seen.discard(key)
            if not turn.context and key not in seen and key not in recalled:
                proposals.append(replace(each, scope=_scope(each, request.scopes)))
            seen.add(key)
        before = _Before.of_user(turn)
    return proposals


def _key(content: str) -> str:
    """What is the same in one statement said twice; 用户的女儿 is 用户女儿."""
    return normalise(content).rstrip(" .。").replace("用户的", "用户")


@dataclass(frozen=True, slots=True)
class _Before:
    """The turn before one of the user.

    Args:
        assistant: it, if the assistant said it.
        lines: what it states of the user, in the third person.
        person: whom it names of the user's people, as "my son".

    """

    assistant: ConversationTurn | None = None
    lines: tuple[str, ...] = ()
    person: str | None = None

    @classmethod
    def of_assistant(cls, turn: ConversationTurn) -> "_Before":
        said = turn.content[:MAX_CLAIM]
        return cls(turn, tuple(spoken_by_assistant(said)), person_in(in_first_person(said)))

    @classmethod
    def of_user(cls, turn: ConversationTurn) -> "_Before":
        return cls(lines=tuple(spoken_by_user(turn.content[:MAX_CLAIM])))


def _of_turn(turn: ConversationTurn, before: _Before, known: list[Statement]) -> Iterator[Proposed]:
    """Proposals of one turn of the user; what they say is added to what is known."""
    text = turn.content[:MAX_TURN]
    assistant = before.assistant
    claimed = claims(assistant.content) if assistant else []
    confirmed = confirmable(assistant.content) if assistant else []
    rest = affirmed(text) if confirmed else None
    both = (assistant.message_id, turn.message_id) if assistant else (turn.message_id,)
    if rest is not None:
        # A name in a greeting is not what a yes answers.
        for each in confirmed:
            if not each.content.startswith("The user is called"):
                known.append(each)
                yield _proposed(replace(each, confidence=CONFIRMED), turn, both)
        text = rest
    elif assistant and not has_cjk(text):
        answer = answered(assistant.content, text, before.person)
        if answer:
            known.extend(answer[0])
            yield from (_proposed(each, turn, both) for each in answer[0])
            text = answer[1]
    mended = corrected(text, [*known, *claimed], is_chinese=is_chinese(text))
    if mended is None and not has_cjk(text):
        mended = elliptical(text, before.lines) or slip(text)
    if mended:
        for each, error in zip(mended.statements, mended.errors, strict=True):
            known.append(each)
            wrong = _dated(error, turn, each) if error else None
            yield replace(_proposed(each, turn, (turn.message_id,)), source_error=wrong)
        text = mended.rest
    asked = assistant.content if assistant else ""
    for each in _read(text, before.person, asked, answered=rest is not None):
        known.append(each)
        yield _proposed(each, turn, (turn.message_id,))
    yield from _of_others(text, turn)


def _of_others(text: str, turn: ConversationTurn) -> Iterator[Proposed]:
    """What a turn says of somebody named; a correction of the user's own words is not of it."""
    for each in told_of_others(text):
        yield _proposed(each, turn, (turn.message_id,))


def _read(text: str, person: str | None, question: str, *, answered: bool) -> Iterator[Statement]:
    """Statements of a text, each run of sentences in its own language."""
    for piece, han in by_language(text):
        if han:
            yield from chinese.read(piece, question, answered=answered)
        else:
            yield from english.read(piece, person)


def _proposed(statement: Statement, turn: ConversationTurn, evidence: tuple[str, ...]) -> Proposed:
    given = attribute_of(statement.content)
    kind = statement.memory_type
    attribute = given[0] if given and gives(kind, given[0]) else None
    # Where somebody lives or works now is a fact since then, not a thing of the past.
    if kind == "event" and attribute in {"user.residence", "user.employer", "user.occupation"}:
        kind = "fact"
    begin, end = _holds(statement, attribute, turn.said_at)
    return Proposed(
        content=_dated(statement.content, turn, statement),
        memory_type=kind,
        confidence=statement.confidence,
        evidence=evidence,
        scope="project" if statement.project else "user",
        attribute=attribute,
        valid_from=begin,
        valid_to=end,
        retracts=statement.retracts,
        relations=relations_of(statement.content, retracts=statement.retracts),
    )


def _dated(content: str, turn: ConversationTurn, statement: Statement) -> str:
    past = statement.past and _AHEAD.search(content) is None
    weekdays = statement.memory_type in {"event", "goal", "decision"}
    return with_written_dates(content, turn.said_at, past=past, weekdays=weekdays)


def _holds(
    statement: Statement, attribute: str | None, said_at: datetime
) -> tuple[datetime | None, datetime | None]:
    """When it holds. The date of a plan is its aim, and a plan holds from now on."""
    if statement.memory_type in {"goal", "habit", "preference", "skill"} or attribute in _DATELESS:
        return None, None
    begin, end = validity(statement.content, said_at, past=statement.past)
    if statement.memory_type == "event" or _CHANGES.search(statement.content):
        return begin, end
    return None, end


def _scope(proposed: Proposed, allowed: Sequence[Scope]) -> Scope:
    if proposed.scope in allowed or not allowed:
        return proposed.scope
    return "user" if "user" in allowed else allowed[0]
