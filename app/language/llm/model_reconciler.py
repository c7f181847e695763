"""The reconciler that asks a model, once for all statements that have neighbours.

The model sees short names for memories and answers with them. An inconsistent answer never removes
or drops anything: the statement is added, and the reason says why. Limits and protection are
applied by the caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ValidationError

from app.language.llm.answer_schemas import reconcile_schema
from app.language.llm.chat import ChatModel
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import ModelUse
from app.language.llm.model_entries import remark
from app.language.llm.model_maintenance import MaintenanceSheet
from app.language.llm.prompt_lines import day, line
from app.language.llm.prompts import RECONCILE_VERSION, reconcile_prompt
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    ReconcileDecision,
    ReconcileQuestion,
    Reconciliation,
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
        self, questions: Sequence[ReconcileQuestion], agenda: Agenda = NO_AGENDA
    ) -> Reconciliation:
        """As the port says; nobody is asked when no question has neighbours."""
        asked = [question for question in questions if question.neighbours]
        if not asked:
            return Reconciliation(tuple(_alone(question) for question in questions))
        sheet, maintenance = _Sheet.of(asked), MaintenanceSheet.of(agenda)
        tokens = 400 + _TOKENS_PER_DECISION * len(asked) + maintenance.tokens
        answer = await self._chat.answer(
            reconcile_prompt(due=bool(agenda.due), parts=bool(agenda.parts)),
            "\n".join([sheet.text, *maintenance.lines]),
            schema=reconcile_schema(agenda),
            schema_name="decisions",
            max_output_tokens=min(tokens, _MOST_TOKENS),
        )
        entries = _entries(answer.data["decisions"], answer.use)
        decided = iter(
            _decision(question, entries.get(f"q{number}"), sheet.memory_ids)
            for number, question in enumerate(asked, start=1)
        )
        return Reconciliation(
            tuple(
                next(decided) if question.neighbours else _alone(question) for question in questions
            ),
            answer.use,
            maintenance.reviews(answer.data),
            maintenance.joins(answer.data),
        )


@dataclass(frozen=True, slots=True)
class _Sheet:
    """What the model reads, and which memory each short name means."""

    text: str
    memory_ids: Mapping[str, str]

    @classmethod
    def of(cls, questions: Sequence[ReconcileQuestion]) -> "_Sheet":
        """Each memory once, before the statements that it is near to."""
        names: dict[str, str] = {}
        memories: list[str] = []
        statements: list[str] = []
        for number, question in enumerate(questions, start=1):
            for near in question.neighbours:
                if near.memory_id in names:
                    continue
                names[near.memory_id] = f"n{len(names) + 1}"
                memories.append(
                    line(
                        kind="memory",
                        id=names[near.memory_id],
                        text=near.content,
                        type=near.memory_type,
                        attribute=near.attribute,
                        valid_from=day(near.valid_from),
                        valid_to=day(near.valid_to),
                        since=day(near.said_at or near.create_time),
                        fixed=near.protected,
                    )
                )
            said = question.proposed
            statements.append(
                line(
                    kind="statement",
                    id=f"q{number}",
                    text=said.content,
                    type=said.memory_type,
                    attribute=said.attribute,
                    valid_from=day(said.valid_from),
                    valid_to=day(said.valid_to),
                    since=day(said.said_at),
                    mends=said.source_error,
                    retracts=said.retracts,
                    near=[names[near.memory_id] for near in question.neighbours],
                )
            )
        text = "\n".join([*memories, *statements])
        return cls(text, {name: memory_id for memory_id, name in names.items()})


def _word(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(dict.fromkeys(_word(item) for item in values))


class _DecisionEntry(BaseModel):
    statement: Annotated[str, BeforeValidator(_word)]
    event: Annotated[str, BeforeValidator(_word)] = ""
    memories: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    content: Annotated[str | None, BeforeValidator(remark)] = None
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
    question: ReconcileQuestion, entry: _DecisionEntry | None, memory_ids: Mapping[str, str]
) -> ReconcileDecision:
    """The model's decision, or ADD where following it would lose or destroy something."""
    if entry is None:
        return _added("The model decided nothing.")
    near = {neighbour.memory_id for neighbour in question.neighbours}
    named = tuple(memory_ids.get(name.lower(), "") for name in entry.memories)
    if not near.issuperset(named):
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
            decision = _ended(question, event, named, reason)
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
    question: ReconcileQuestion, event: str, named: tuple[str, ...], reason: str
) -> ReconcileDecision:
    if len(named) != 1:
        return _added("The model did not name one memory.")
    if event == "DELETE" and question.proposed.retracts:
        return ReconcileDecision("DELETE", named, reason=reason)
    # The old one goes either way; deleting it for a new one would lose that, too.
    return ReconcileDecision("SUPERSEDE", named, reason=reason)


def _added(reason: str) -> ReconcileDecision:
    return ReconcileDecision("ADD", reason=reason)
