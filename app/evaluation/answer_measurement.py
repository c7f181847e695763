"""Answers measured: a model reads what the service shows, another grades what it says, and what
that is worth is told by variant and category, as a table and as JSON.
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import typer

from app.console import REFUSED, UNUSABLE, fail, out, print_table
from app.deployment import COMMAND_WAIT, open_chats
from app.errors import ConfigurationError
from app.evaluation.conversation_measurement import gather_conversations, report_conversations
from app.evaluation.dataset import Dataset
from app.evaluation.kept_answers import KeptAnswers, ModelAnswer, Prompt
from app.evaluation.measurement import ReportTarget, keep_report
from app.evaluation.reader import Reading, grader_prompt, readings_of, score_of
from app.evaluation.report import by_category, percent, rounded_interval, rows_of
from app.evaluation.run import Plan
from app.identity.usage.quota import Price, parsed_prices
from app.language.llm.chat import ChatModel
from app.language.llm.errors import UnknownModelError
from app.language.llm.model_catalogue import ChatCatalogue
from app.settings import Settings
from kemem.address import Service


@dataclass(frozen=True, slots=True)
class Graded:
    """A reading, what was answered and what that is worth; `score` is None where either failed."""

    reading: Reading
    answer: str | None
    score: float | None
    problem: str | None
    grades: Any = None
    """As the grader gave them."""


def answer_report_of(dataset: Dataset, graded: Sequence[Graded]) -> dict[str, Any]:
    """By variant; means are over the answers that were graded, the others are counted."""
    variants: dict[str, list[Graded]] = {}
    for answer in graded:
        variants.setdefault(answer.reading.variant, []).append(answer)
    return {
        "variants": {name: _of_variant(dataset, held) for name, held in variants.items()},
        "questions": [_line(answer) for answer in graded],
    }


def _of_variant(dataset: Dataset, graded: Sequence[Graded]) -> dict[str, Any]:
    categories = [answer.reading.question.category for answer in graded]
    found = by_category(
        dataset, categories, lambda held: _figures([graded[number] for number in held])
    )
    return found | {
        "problems": dict(Counter(answer.problem for answer in graded if answer.problem))
    }


def _figures(graded: Sequence[Graded]) -> dict[str, Any]:
    scores = [answer.score for answer in graded if answer.score is not None]
    tokens = [answer.reading.prompt.tokens for answer in graded if answer.reading.prompt]
    return {
        "questions": len(graded),
        "graded": len(scores),
        "score": round(sum(scores) / len(scores), 4) if scores else None,
        "interval": rounded_interval(scores) if scores else None,
        "prompt_tokens": round(sum(tokens) / len(tokens), 1) if tokens else None,
    }


def _line(graded: Graded) -> dict[str, Any]:
    reading = graded.reading
    prompt = reading.prompt.user if reading.prompt else ""
    return {
        "store": reading.store.store_id,
        "category": reading.question.category,
        "variant": reading.variant,
        "question": reading.question.text,
        "question_sha256": hashlib.sha256(reading.question.text.encode()).hexdigest(),
        "prompt_sha256": hashlib.sha256(prompt.encode()).hexdigest(),
        "answer": graded.answer,
        "grades": graded.grades,
        "score": graded.score,
        "problem": graded.problem,
    }


def print_answer_report(report: Mapping[str, Any]) -> None:
    """Variants side by side, in percent with 95 % intervals, and what was not graded."""
    variants = report["variants"]
    tables = {name: dict(rows_of(found)) for name, found in variants.items()}
    categories = list(dict.fromkeys(row for table in tables.values() for row in table))
    rows = [
        (
            category,
            max(table[category]["questions"] for table in tables.values() if category in table),
            *(_cell(table.get(category)) for table in tables.values()),
        )
        for category in categories
    ]
    tokens = [_tokens(table) for table in tables.values()]
    rows.append(("tokens of a prompt", "", *tokens))
    columns = ["questions", *variants]
    out.print()
    title = f"Answers of {report['reader']}, graded by {report['judge']}"
    print_table(title, ("category", *columns), rows, right=columns)
    for name, found in variants.items():
        for problem, count in found["problems"].items():
            out.print(f"{name}: {count} answers were not graded ({problem}).", markup=False)


def _cell(figures: Mapping[str, Any] | None) -> str:
    if figures is None or figures["score"] is None:
        return "-"
    low, high = figures["interval"]
    return f"{percent(figures['score'])} ({percent(low)} to {percent(high)})"


def _tokens(table: Mapping[str, Any]) -> str:
    told = [figures["prompt_tokens"] for figures in table.values() if figures["prompt_tokens"]]
    total = table.get("total", {}).get("prompt_tokens") or (told[0] if told else None)
    return "" if total is None else f"{total:.0f}"


ANSWER_TOKENS: Final = 200
"""Of an answer, before it is known; for the price."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """Who reads and grades, and what the reader is given."""

    model: str
    judge: str
    variants: tuple[str, ...]
    window: int
    cache: Path
    yes: bool
    """Whether the price needs no confirmation."""

    dry_run: bool


async def measure_answers(
    service: Service,
    dataset: Dataset,
    plan: Plan,
    ks: list[int],
    about: dict[str, Any],
    target: ReportTarget,
    *,
    wishes: Wishes,
    settings: Settings,
) -> None:
    """Ask and grade every question in every variant, and print the report.

    What the service gives is gathered and removed first; the models are asked afterwards.

    Raises:
        typer.Exit: something failed or was not graded, or could not be removed; all is reported
            before. Or it was not confirmed.

    """
    async with open_chats(settings, longest_wait=COMMAND_WAIT) as chats:
        reader = KeptAnswers(_model(chats, "--answers", wishes.model), wishes.cache)
        judge = KeptAnswers(_model(chats, "--judge", wishes.judge), wishes.cache)
        search = "messages" in wishes.variants
        gathered = await gather_conversations(service, dataset, plan, search=search)
        report = report_conversations(gathered, ks)
        readings = readings_of(gathered, wishes.variants, wishes.window)
        price = price_of(readings, reader, judge)
        print_price(price, reader, judge, parsed_prices(settings.model_prices))
        report["answers"] = {"reader": reader.model, "judge": judge.model, "price": price}
        failed = gathered.failed or bool(gathered.evaluation.left)
        if not wishes.dry_run:
            confirm(price, yes=wishes.yes)
            graded = await grade_readings(readings, reader, judge, plan.concurrency)
            report["answers"] |= answer_report_of(dataset, graded)
            report["answers"]["spent"] = {
                "reader": asdict(reader.spent),
                "judge": asdict(judge.spent),
            }
            print_answer_report(report["answers"])
            failed |= any(
                graded_answer.score is None and graded_answer.problem != "too_long"
                for graded_answer in graded
            )
    await keep_report(about | report, target, service)
    if failed:
        raise typer.Exit(REFUSED)


def _model(chats: ChatCatalogue[ChatModel | None], option: str, handle: str) -> ChatModel:
    try:
        chat = chats.resolve(handle)
    except UnknownModelError:
        chat = None
    if chat is None:
        raise ConfigurationError(
            f"{option} {handle}: write openai/<model>. It needs OPENAI_API_KEY, or OPENAI_BASE_URL "
            "for a local endpoint that wants none, where this command runs."
        )
    return chat


def price_of(
    readings: Sequence[Reading], reader: KeptAnswers, judge: KeptAnswers
) -> dict[str, dict[str, int]]:
    """Calls and tokens to come, by who is asked; answers that are kept cost nothing.

    What the judge is sent is estimated: it depends on the answers.
    """
    prompts = [reading.prompt for reading in readings if reading.prompt]
    asked = reader.missing(prompts)
    judged = [
        prompt
        for reading in readings
        if reading.prompt and (prompt := _known_grading(reading, reading.prompt, reader, judge))
    ]
    return {
        "reader": {"calls": len(asked), "tokens": sum(prompt.tokens for prompt in asked)},
        "judge": {
            "calls": len(judged),
            "tokens": sum(prompt.tokens + ANSWER_TOKENS for prompt in judged),
        },
    }


def _known_grading(
    reading: Reading, prompt: Prompt, reader: KeptAnswers, judge: KeptAnswers
) -> Prompt | None:
    """What the judge will be sent about a reading; None where its grade is kept."""
    answer = reader.find(prompt)
    said = "" if answer is None or answer.data is None else answer.data["answer"]
    grading = grader_prompt(reading.question, said)
    return None if judge.find(grading) else grading


def print_price(
    price: dict[str, dict[str, int]],
    reader: KeptAnswers,
    judge: KeptAnswers,
    prices: Mapping[str, Price],
) -> None:
    """What is to come, before it does; in money too where the model has a price."""
    for name, asked in (("reader", reader), ("judge", judge)):
        calls, tokens = price[name]["calls"], price[name]["tokens"]
        each = prices.get(asked.model.removeprefix("openai/"))
        money = (
            "" if each is None else f", about {each.of(tokens, calls * ANSWER_TOKENS):.2g} in money"
        )
        out.print(
            f"To ask of the {name} {asked.model}: {calls:,} calls, about {tokens:,} tokens of "
            f"prompts{money}.",
            markup=False,
        )


def confirm(price: dict[str, dict[str, int]], *, yes: bool) -> None:
    """Ask whether to go on. Raises typer.Exit when not."""
    if yes or not any(cost["calls"] for cost in price.values()):
        return
    if not sys.stdin.isatty():
        fail("Nobody can be asked whether to go on: give --yes, or --dry-run.", code=UNUSABLE)
    if not typer.confirm("Go on?", err=True):
        raise typer.Exit(REFUSED)


async def grade_readings(
    readings: Sequence[Reading], reader: KeptAnswers, judge: KeptAnswers, concurrency: int
) -> list[Graded]:
    """Every reading asked and graded, in order; equal answers to a question are graded once."""
    prompts = [reading.prompt for reading in readings if reading.prompt]
    answers = await reader.ask(prompts, "Answers", concurrency)
    gradings: list[Prompt | None] = []
    for reading in readings:
        answer = answers[reading.prompt.key(reader.model)] if reading.prompt else None
        said = answer.data if answer else None
        gradings.append(grader_prompt(reading.question, said["answer"]) if said else None)
    grades = await judge.ask([grading for grading in gradings if grading], "Grades", concurrency)
    return [
        _graded(
            reading,
            answers[reading.prompt.key(reader.model)] if reading.prompt else None,
            grades[grading.key(judge.model)] if grading else None,
        )
        for reading, grading in zip(readings, gradings, strict=True)
    ]


def _graded(reading: Reading, answer: ModelAnswer | None, grade: ModelAnswer | None) -> Graded:
    if answer is None:
        return Graded(reading, None, None, reading.problem)
    if answer.data is None or grade is None:
        return Graded(reading, None, None, f"reader: {answer.problem}")
    said = answer.data["answer"]
    if grade.data is None:
        return Graded(reading, said, None, f"judge: {grade.problem}")
    return Graded(reading, said, score_of(grade.data), None, dict(grade.data))
