"""What contexts show of the labelled messages: figures by budget, as a table and as JSON."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from app.console import out, print_table
from app.evaluation.conversation_run import MeasuredContext
from app.evaluation.dataset import Dataset
from app.evaluation.report import by_category, milliseconds_of, percent, rounded_interval, rows_of


def context_report_of(
    dataset: Dataset, contexts: Mapping[int, Sequence[MeasuredContext]]
) -> dict[str, Any]:
    """By budget: the share of the labelled messages that stand among the excerpts.

    Questions without labelled messages count nowhere; one that was refused counts as shown nothing.
    """
    return {str(budget): _of_budget(dataset, shown) for budget, shown in contexts.items()}


def _of_budget(dataset: Dataset, contexts: Sequence[MeasuredContext]) -> dict[str, Any]:
    shown = [context for context in contexts if context.question.gold]
    shares = [
        len(context.units & context.question.gold) / len(context.question.gold) for context in shown
    ]

    def figures(held: Sequence[int]) -> dict[str, Any]:
        return _figures([shown[number] for number in held], [shares[number] for number in held])

    found = by_category(dataset, [context.question.category for context in shown], figures)
    return found | {
        "milliseconds": milliseconds_of(
            [context.milliseconds for context in shown if not context.problem]
        ),
        "problems": dict(Counter(context.problem for context in contexts if context.problem)),
        "failed": sum(context.failed for context in contexts),
        "questions": [
            {
                "store": context.store.store_id,
                "category": context.question.category,
                "question": context.question.text,
                "shown": sorted(context.units & context.question.gold),
                "not_shown": sorted(context.question.gold - context.units),
                "tokens": context.tokens,
                "sha256": hashlib.sha256(context.prompt.encode()).hexdigest(),
            }
            for context in shown
        ],
    }


def _figures(shown: Sequence[MeasuredContext], shares: Sequence[float]) -> dict[str, Any]:
    count = len(shown)
    return {
        "questions": count,
        "evidence": round(sum(shares) / count, 4),
        "interval": rounded_interval(shares),
        "all_evidence": round(sum(share == 1 for share in shares) / count, 4),
        "messages": round(sum(len(context.units) for context in shown) / count, 1),
        "excerpt_tokens": round(sum(context.excerpt_tokens for context in shown) / count, 1),
        "tokens": round(sum(context.tokens for context in shown) / count, 1),
    }


def print_context_report(report: Mapping[str, Any]) -> None:
    """A table for each budget, in percent, and what was odd."""
    columns = ["questions", "evidence", "95 %", "all of it", "messages", "tokens"]
    for budget, found in report.items():
        out.print()
        rows = [
            (
                name,
                figures["questions"],
                percent(figures["evidence"]),
                " to ".join(map(percent, figures["interval"])),
                percent(figures["all_evidence"]),
                f"{figures['messages']:.1f}",
                f"{figures['tokens']:.0f}",
            )
            for name, figures in rows_of(found)
        ]
        title = f"Labelled messages among the excerpts of a context of {budget} tokens"
        print_table(title, ("category", *columns), rows, right=columns)
        waited = found["milliseconds"]
        if waited:
            out.print(
                f"A context took {waited['p50']:.1f} ms (p50) and {waited['p95']:.1f} ms (p95), as "
                "the client sees it.",
                markup=False,
            )
        for code, count in found["problems"].items():
            out.print(f"{count} contexts were not given ({code}).", markup=False)
