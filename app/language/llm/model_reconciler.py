"""The reconciler that asks a model, once for all statements of a run.

The model sees short names for memories and statements and answers with them; a statement may name
an earlier one, which stands for what becomes of it. An inconsistent answer never removes or drops
anything: the statement is added, and the reason says why. Limits and protection are applied by the
caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ValidationError

from app.language.llm.answer_schemas import reconcile_schema
from app.language.llm.chat import ChatModel
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import ModelUse
from app.language.llm.model_entries import attribute_name, remark
from app.language.llm.model_maintenance import MaintenanceSheet
from app.language.llm.prompt_lines import day, last_day, line
from app.language.llm.prompts import RECONCILE_VERSION, reconcile_prompt
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    Neighbour,
    ReconcileDecision,
    ReconcileQuestion,
    Reconciliation,
    Remainder,
)

_LONGEST_REASON: Final = 300

# A decision has some 60 tokens, and with the text of a merge 200.
_TOKENS_PER_DECISION: Final = 200
_MOST_TOKENS: Final = 8_000


class ModelReconciler:
    """Asks one chat model. Without a state of its own, so calls may overlap."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def model(self) -> str:
        return self._chat.model

    @property
    def prompt_version(self) -> str:
        return RECONCILE_VERSION

    async def reconcile(
        self,
        questions: Sequence[ReconcileQuestion],
        agenda: Agenda = NO_AGENDA,
        besides: Sequence[Neighbour] = (),
    ) -> Reconciliation:
        """As the port says; nobody is asked when no question has neighbours."""
        asked = _asked(questions)
        if not asked:
            return Reconciliation(tuple(_alone(question) for question in questions))
        sheet = _Sheet.of(list(asked.values()), besides)
        maintenance = MaintenanceSheet.of(agenda)
        tokens = 400 + _TOKENS_PER_DECISION * len(asked) + maintenance.tokens
        answer = await self._chat.answer(
            reconcile_prompt(due=bool(agenda.due), parts=bool(agenda.parts)),
            "\n".join([sheet.text, *maintenance.lines]),
            schema=reconcile_schema(agenda),
            schema_name="decisions",
            max_output_tokens=min(tokens, _MOST_TOKENS),
        )
        entries = _entries(answer.data["decisions"], answer.use)
        names = {place: f"q{number}" for number, place in enumerate(asked, start=1)}
        return Reconciliation(
            tuple(
                _decision(question, entries.get(names[place]), sheet.known_to(names[place]))
                if place in asked
                else _alone(question)
                for place, question in enumerate(questions)
            ),
            answer.use,
            maintenance.reviews(answer.data),
            maintenance.joins(answer.data),
        )


def _asked(questions: Sequence[ReconcileQuestion]) -> dict[int, ReconcileQuestion]:
    """Those with neighbours, and those that are one, by their place."""
    named = {near.memory_id for question in questions for near in question.neighbours}
    return {
        place: question
        for place, question in enumerate(questions)
        if question.neighbours or (question.statement_id and question.statement_id in named)
    }


@dataclass(frozen=True, slots=True)
class _Sheet:
    """What the model reads, and what each short name means: a memory, or a statement."""

    text: str
    memories: Mapping[str, str]
    statements: Mapping[str, str]

    @classmethod
    def of(cls, questions: Sequence[ReconcileQuestion], besides: Sequence[Neighbour]) -> "_Sheet":
        """Each memory once, before the statements that it is near to."""
        statements = {
            question.statement_id or f"q{number}": f"q{number}"
            for number, question in enumerate(questions, start=1)
        }
        memories: dict[str, str] = {}
        lines: list[str] = []
        near_to_any = chain.from_iterable(question.neighbours for question in questions)
        for near in chain(near_to_any, besides):
            if near.memory_id not in memories and near.memory_id not in statements:
                memories[near.memory_id] = f"n{len(memories) + 1}"
                lines.append(_memory(near, memories[near.memory_id]))
        names = memories | statements
        lines += [
            _statement(question, f"q{number}", names)
            for number, question in enumerate(questions, start=1)
        ]
        return cls("\n".join(lines), _inverted(memories), _inverted(statements))

    def known_to(self, name: str) -> Mapping[str, str]:
        """What a statement may name: every memory that is shown, and the statements before it."""
        earlier = list(self.statements)[: list(self.statements).index(name)]
        return {**self.memories, **{other: self.statements[other] for other in earlier}}


def _memory(near: Neighbour, name: str) -> str:
    return line(
        kind="memory",
        id=name,
        text=near.content,
        type=near.memory_type,
        attribute=near.attribute,
        speaker=near.speaker,
        valid_from=day(near.valid_from),
        valid_to=last_day(near.valid_to),
        due=day(near.due),
        said=day(near.said_at or near.create_time),
        fixed=near.saved_by_person,
    )


def _statement(question: ReconcileQuestion, name: str, names: Mapping[str, str]) -> str:
    proposed = question.proposed
    return line(
        kind="statement",
        id=name,
        text=proposed.content,
        type=proposed.memory_type,
        attribute=proposed.attribute,
        speaker=proposed.speaker,
        valid_from=day(proposed.begins),
        valid_to=last_day(proposed.valid_to),
        due=day(proposed.due),
        said=day(proposed.said_at),
        mends=proposed.source_error,
        retracts=proposed.retracts,
        near=[names[near.memory_id] for near in question.neighbours],
    )


def _inverted(names: Mapping[str, str]) -> dict[str, str]:
    return {name: each for each, name in names.items()}


def _word(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(dict.fromkeys(_word(item) for item in values))


class _Rest(BaseModel):
    memory: Annotated[str, BeforeValidator(_word)] = ""
    content: Annotated[str | None, BeforeValidator(remark)] = None
    attribute: Annotated[str | None, BeforeValidator(attribute_name)] = None


def _rests(value: Any) -> list[Any]:
    return [rest for rest in value if isinstance(rest, Mapping)] if isinstance(value, list) else []


class _DecisionEntry(BaseModel):
    statement: Annotated[str, BeforeValidator(_word)]
    event: Annotated[str, BeforeValidator(_word)] = ""
    memories: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    content: Annotated[str | None, BeforeValidator(remark)] = None
    rests: Annotated[tuple[_Rest, ...], BeforeValidator(_rests)] = ()
    reason: Annotated[str | None, BeforeValidator(remark)] = None


def _entries(decisions: Any, use: ModelUse) -> dict[str, _DecisionEntry]:
    """By the statement's name; the first that names it counts.

    Raises:
        ModelUnavailableError: there is no list of them.

    """
    if not isinstance(decisions, list):
        raise ModelUnavailableError("bad_answer", fault="unreadable", use=use)
    entries: dict[str, _DecisionEntry] = {}
    for decision in decisions:
        try:
            entry = _DecisionEntry.model_validate(decision)
        except ValidationError:
            continue
        entries.setdefault(entry.statement.lower(), entry)
    return entries


def _alone(question: ReconcileQuestion) -> ReconcileDecision:
    if question.proposed.retracts:
        return ReconcileDecision("NONE", reason="Nothing like it is remembered.")
    return ReconcileDecision("ADD", reason="Nothing like it is remembered.")


def _decision(
    question: ReconcileQuestion, entry: _DecisionEntry | None, known: Mapping[str, str]
) -> ReconcileDecision:
    """The model's decision, or ADD where following it would lose or destroy something."""
    if entry is None:
        # What changes nothing need not be answered.
        reason = "It changes nothing that is remembered."
        return ReconcileDecision("NONE" if question.proposed.retracts else "ADD", reason=reason)
    named = tuple(dict.fromkeys(known.get(name.lower(), "") for name in entry.memories))
    if "" in named:
        return _added("The model named an unknown memory.")
    reason = (entry.reason or "")[:_LONGEST_REASON]
    match entry.event.upper():
        case "ADD":
            decision = ReconcileDecision("ADD", reason=reason)
        case "NONE":
            decision = _repeated(question, named, reason)
        case "UPDATE" | "MERGE" as event:
            decision = _rewritten(event, entry, named, reason)
        case "SUPERSEDE" | "DELETE" as event:
            kept = _remainders(entry, named, known)
            decision = _ended(question, event, named, kept, reason)
        case _:
            decision = _added("The model named an unknown event.")
    return decision


def _repeated(
    question: ReconcileQuestion, named: tuple[str, ...], reason: str
) -> ReconcileDecision:
    if named or question.proposed.retracts:
        return ReconcileDecision("NONE", named, reason=reason)
    return _added("The model named no memory that says so.")


def _rewritten(
    event: str, entry: _DecisionEntry, named: tuple[str, ...], reason: str
) -> ReconcileDecision:
    if entry.content is None:
        return _added("The model gave no text.")
    if len(named) == 1:
        # A merge with one memory is what an update does.
        return ReconcileDecision("UPDATE", named, entry.content, reason)
    if event == "MERGE" and named:
        return ReconcileDecision("MERGE", named, entry.content, reason)
    return _added("The model did not name one memory.")


def _ended(
    question: ReconcileQuestion,
    event: str,
    named: tuple[str, ...],
    kept: tuple[Remainder, ...],
    reason: str,
) -> ReconcileDecision:
    if not named:
        return _added("The model named no memory.")
    if event == "DELETE" and question.proposed.retracts:
        return ReconcileDecision("DELETE", named, reason=reason, remainders=kept)
    # The old one goes either way; deleting it for a new one would lose that, too.
    return ReconcileDecision("SUPERSEDE", named, reason=reason, remainders=kept)


def _remainders(
    entry: _DecisionEntry, named: tuple[str, ...], known: Mapping[str, str]
) -> tuple[Remainder, ...]:
    """The first remainder of each memory that ends.

    A model that cannot be held to the schema writes it as `content`: it is the first one's.
    """
    found: dict[str, Remainder] = {}
    if named and entry.content:
        found[named[0]] = Remainder(named[0], entry.content, inherits=True)
    for rest in reversed(entry.rests):
        memory_id = known.get(rest.memory.lower())
        if memory_id in named and rest.content:
            found[memory_id] = Remainder(memory_id, rest.content, rest.attribute)
    return tuple(found[each] for each in named if each in found)


def _added(reason: str) -> ReconcileDecision:
    return ReconcileDecision("ADD", reason=reason)
