"""What answers are worth: figures by variant and category, as a table and as JSON."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.console import out, print_table
from app.evaluation.dataset import Dataset
from app.evaluation.reader import Reading
from app.evaluation.report import by_category, percent, rounded_interval, rows_of


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
