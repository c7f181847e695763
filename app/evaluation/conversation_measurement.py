"""Conversations measured on a running service: what searches find, and what contexts show."""

from dataclasses import dataclass
from typing import Any

import typer

from app.console import REFUSED, out
from app.evaluation.api import open_api
from app.evaluation.context_report import context_report_of, print_context_report
from app.evaluation.conversation_run import ConversationEvaluation, MeasuredContext
from app.evaluation.dataset import Dataset
from app.evaluation.measurement import ReportTarget, keep_report, print_search_report, say_kept
from app.evaluation.report import loaded_of, loaded_sentences, report_of
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
