"""Conversations measured on a running service: what searches find, what contexts show of the
labelled messages, and the figures of these by budget, as a table and as JSON.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from app.console import REFUSED, out, print_table
from app.evaluation.api import open_api
from app.evaluation.conversation_run import ConversationEvaluation, MeasuredContext
from app.evaluation.dataset import Dataset
from app.evaluation.measurement import ReportTarget, keep_report, print_search_report, say_kept
from app.evaluation.report import (
    by_category,
    loaded_of,
    loaded_sentences,
    milliseconds_of,
    percent,
    report_of,
    rounded_interval,
    rows_of,
)
from app.evaluation.run import AskedQuestion, Plan
from app.runtime import utc_now
from kemem.address import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the service gave for the questions of a data set, each in their order."""

    dataset: Dataset
    evaluation: ConversationEvaluation
    asked: list[AskedQuestion]
    """Searches of messages; none when they are not measured."""

    contexts: dict[int, list[MeasuredContext]]
    """By budget."""

    @property
    def failed(self) -> int:
        """Searches and contexts that the service could not give."""
        shown = sum(context.failed for held in self.contexts.values() for context in held)
        return shown + sum(answer.failed for answer in self.asked)


async def gather_conversations(
    service: Service, dataset: Dataset, plan: Plan, *, search: bool
) -> Gathered:
    """Store the data set as conversations, ask everything, and remove it again.

    Args:
        search: whether messages are searched for; contexts are asked for by the budgets of `plan`.

    """
    async with open_api(service.base_url, service.key, connections=plan.concurrency) as api:
        evaluation = ConversationEvaluation(api, dataset, plan, utc_now())
        await evaluation.check()
        async with evaluation.stored():
            asked = await evaluation.ask() if search else []
            contexts = {budget: await evaluation.contexts(budget) for budget in plan.budgets}
        say_kept(evaluation, plan)
    return Gathered(dataset=dataset, evaluation=evaluation, asked=asked, contexts=contexts)


async def measure_conversations(
    service: Service,
    dataset: Dataset,
    plan: Plan,
    ks: list[int],
    about: dict[str, Any],
    target: ReportTarget,
    *,
    search: bool,
) -> None:
    """Measure searches of messages, contexts, or both, and print the report.

    Raises:
        typer.Exit: something failed, or could not be removed; all is reported before.

    """
    gathered = await gather_conversations(service, dataset, plan, search=search)
    await keep_report(about | report_conversations(gathered, ks), target, service)
    if gathered.failed or gathered.evaluation.left:
        raise typer.Exit(REFUSED)


def report_conversations(gathered: Gathered, ks: list[int]) -> dict[str, Any]:
    """The report of searches and contexts, printed and ready for JSON."""
    dataset, evaluation = gathered.dataset, gathered.evaluation
    labelled = [answer for answer in gathered.asked if answer.question.gold]
    if labelled:
        report = report_of(dataset, evaluation, labelled, ks)
        print_search_report(dataset, report, ks)
    else:
        report = {"loaded": loaded_of(evaluation, dataset)}
        out.print(f"{dataset.name}: {dataset.question_count} questions", markup=False)
        for sentence in loaded_sentences(report["loaded"]):
            out.print(sentence, markup=False)
    if gathered.contexts:
        report["contexts"] = context_report_of(dataset, gathered.contexts)
        print_context_report(report["contexts"])
    return report


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
