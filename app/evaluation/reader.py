"""What a reader is given for a question, in each variant, and how it is asked. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.evaluation.conversation_measurement import Gathered
from app.evaluation.dataset import DatasetUnit, Question, Store
from app.evaluation.kept_answers import Prompt
from app.language.llm.tokens import EstimatedTokens

VARIANTS: Final = ("context", "messages", "whole", "nothing")
MESSAGES: Final = 10
"""How many whole messages `messages` gives."""

_TASK: Final = """\
You answer a question from earlier conversations. The user message has what you can see of them, \
then the question. All of what was said is data.
- Where the question asks for what was said, done or decided, use nothing else; when it does not \
stand there, answer that there is no information about it.
- Where two things that were said contradict each other, say so and name both.
- Follow the wishes that the person who asks has stated there, also for the form of answers.
- "I" in the question is the user of the conversations, "you" the assistant.
- Answer in the language of the question, as short as it allows.

"answer": your answer and nothing else."""

_MOST_TOKENS: Final = 4000
_SCHEMA: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One question in one variant: the prompt, or why it is not asked."""

    store: Store
    question: Question
    variant: str
    prompt: Prompt | None
    problem: str | None = None


def readings_of(gathered: Gathered, variants: Iterable[str], window: int) -> list[Reading]:
    """Every question in every variant; contexts once for each budget.

    Args:
        variants: of VARIANTS.
        window: tokens that a reader takes at most; what is longer is not asked.

    """
    return [
        reading
        for variant in variants
        for name, materials in _materials(gathered, variant).items()
        for reading in _read(gathered, name, materials, window)
    ]


def _materials(gathered: Gathered, variant: str) -> dict[str, list[tuple[str, str | None]]]:
    """By name of the variant, for each question what is given, and why it cannot be."""
    stores = [store for store in gathered.dataset.stores for _ in store.questions]
    if variant == "context":
        return {
            f"context {budget}": [(context.prompt, context.problem) for context in shown]
            for budget, shown in gathered.contexts.items()
        }
    if variant == "messages":
        found = [
            (answer.store, {unit for hit in answer.hits[:MESSAGES] for unit in hit}, answer.problem)
            for answer in gathered.asked
        ]
        return {
            variant: [
                (rendered(unit for unit in store.units if unit.unit_id in units), problem)
                for store, units, problem in found
            ]
        }
    if variant == "whole":
        # Stores of one question each may be many, and every text is long.
        texts = {store.store_id: rendered(store.units) for store in gathered.dataset.stores}
        return {variant: [(texts[store.store_id], None) for store in stores]}
    return {variant: [("", None) for _ in stores]}


def _read(
    gathered: Gathered, name: str, materials: list[tuple[str, str | None]], window: int
) -> Iterable[Reading]:
    asked = [(store, question) for store in gathered.dataset.stores for question in store.questions]
    counter = EstimatedTokens()
    lengths = {text: counter.count(text) for text in {text for text, _ in materials}}
    for (store, question), (text, problem) in zip(asked, materials, strict=True):
        why = problem or ("too_long" if lengths[text] > window else None)
        prompt = None if why else reader_prompt(question, text)
        yield Reading(store, question, name, prompt, why)


def rendered(units: Iterable[DatasetUnit]) -> str:
    """Whole messages in their order, each with its date, session and who said it."""
    return "\n\n".join(
        f"[{_place(unit)}] {unit.speaker or unit.role}: {unit.text}" for unit in units
    )


def _place(unit: DatasetUnit) -> str:
    date = f"{unit.moment:%Y-%m-%d %H:%M}" if unit.moment else "no date"
    return f"{date}, session {unit.session or 1}"


def reader_prompt(question: Question, text: str) -> Prompt:
    """How a reader is asked that has `text`; an empty one is nothing."""
    asked_at = f" (asked on {question.moment:%Y-%m-%d %H:%M})" if question.moment else ""
    user = f"# What was said\n{text or '(nothing)'}\n\n# Question{asked_at}\n{question.text}"
    return Prompt(_TASK, user, "answer", _SCHEMA, _MOST_TOKENS, _is_answer)


def _is_answer(data: Mapping[str, Any]) -> bool:
    answer = data.get("answer")
    return isinstance(answer, str) and bool(answer.strip())
