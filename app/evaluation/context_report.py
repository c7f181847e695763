"""What contexts show of the labelled messages: figures by budget, as a table and as JSON."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from app.console import out, print_table
from app.evaluation.conversation_run import ShownContext
from app.evaluation.dataset import Dataset
from app.evaluation.report import by_category, milliseconds_of, percent, rounded_interval, rows_of


def context_report_of(
    dataset: Dataset, contexts: Mapping[int, Sequence[ShownContext]]
) -> dict[str, Any]:
    """By budget: the share of the labelled messages that stand among the excerpts.

    Questions without labelled messages count nowhere; one that was refused counts as shown nothing.
    """
    return {str(budget): _of_budget(dataset, shown) for budget, shown in contexts.items()}


def _of_budget(dataset: Dataset, contexts: Sequence[ShownContext]) -> dict[str, Any]:
    shown = [one for one in contexts if one.question.gold]
    shares = [len(one.units & one.question.gold) / len(one.question.gold) for one in shown]

    def figures(held: Sequence[int]) -> dict[str, Any]:
        return _figures([shown[number] for number in held], [shares[number] for number in held])

    found = by_category(dataset, [one.question.category for one in shown], figures)
    return found | {
        "milliseconds": milliseconds_of([one.milliseconds for one in shown if not one.problem]),
        "problems": dict(Counter(one.problem for one in contexts if one.problem)),
        "failed": sum(one.failed for one in contexts),
        "questions": [
            {
                "store": one.store.store_id,
                "category": one.question.category,
                "question": one.question.text,
                "shown": sorted(one.units & one.question.gold),
                "not_shown": sorted(one.question.gold - one.units),
                "tokens": one.tokens,
                "sha256": hashlib.sha256(one.prompt.encode()).hexdigest(),
            }
            for one in shown
        ],
    }


def _figures(shown: Sequence[ShownContext], shares: Sequence[float]) -> dict[str, Any]:
    count = len(shown)
    return {
        "questions": count,
        "evidence": round(sum(shares) / count, 4),
        "interval": rounded_interval(shares),
        "all_evidence": round(sum(share == 1 for share in shares) / count, 4),
        "messages": round(sum(len(one.units) for one in shown) / count, 1),
        "excerpt_tokens": round(sum(one.excerpt_tokens for one in shown) / count, 1),
        "tokens": round(sum(one.tokens for one in shown) / count, 1),
    }


def print_context_report(report: Mapping[str, Any]) -> None:
    """A table for each budget, in percent, and what was odd."""
    columns = ["questions", "evidence", "95 %", "all of it", "messages", "tokens"]
    for budget, found in report.items():
        out.print()
        rows = [
            (
                name,
                one["questions"],
                percent(one["evidence"]),
                " to ".join(map(percent, one["interval"])),
                percent(one["all_evidence"]),
                f"{one['messages']:.1f}",
                f"{one['tokens']:.0f}",
            )
            for name, one in rows_of(found)
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
