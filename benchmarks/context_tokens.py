"""What a context saves, and what it keeps: `python -m benchmarks.context_tokens --locomo PATH`.

The ten conversations of LoCoMo are stored over the public API as `kemem eval` stores them, one
memory per turn, in a keyless service that the benchmark starts. Each question is then asked as a
request for a context, with several memory budgets: how many tokens go to the model, compared with
the whole conversation, and whether the turns with the answer are inside. For comparison: the
newest turns that fit the same budget, which is what a window alone would send.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.evaluation.api import Api, open_api
from app.evaluation.dataset import Dataset, Question, Store, choose
from app.evaluation.locomo import read_locomo
from app.evaluation.run import Evaluation, Plan
from app.language.llm.tokens import TokenCounter, open_counter
from app.runtime import utc_now
from benchmarks.database import open_cluster
from benchmarks.processes import server

BUDGETS: Final = (500, 1_400, 2_000)
CONCURRENCY: Final = 4
QUICK_STORES: Final = 2
QUICK_QUESTIONS: Final = 60
RESULT: Final = Path(__file__).parent / "results" / "context_tokens.json"


@dataclass(frozen=True, slots=True)
class Sent:
    """What went to the model for one question.

    Args:
        tokens: of the whole context, the question in it.
        gold: turns that answer the question.
        inside: how many of them are in the context.
        shown: turns in it.
        newest: how many of `gold` are among the newest turns of as many tokens.

    """

    category: str
    budget: int
    tokens: int
    history: int
    gold: int
    inside: int
    shown: int
    newest: int


def lines_of(store: Store, counter: TokenCounter) -> dict[str, int]:
    """Tokens of every turn, in order: of its words alone, without who said them and when."""
    counts = counter.count_many([f"{unit.text}\n" for unit in store.units])
    return {unit.unit_id: tokens for unit, tokens in zip(store.units, counts, strict=True)}


def newest_within(lines: Mapping[str, int], budget: int) -> set[str]:
    """The newest turns that fit."""
    kept = set()
    for unit_id, tokens in reversed(list(lines.items())):
        budget -= tokens
        if budget < 0:
            break
        kept.add(unit_id)
    return kept


class Asking:
    """Questions about what an evaluation has stored, asked as requests for a context."""

    def __init__(self, api: Api, evaluation: Evaluation, counter: TokenCounter) -> None:
        self._api = api
        self._evaluation = evaluation
        self._counter = counter
        self._turns = asyncio.Semaphore(CONCURRENCY)

    async def ask_all(self, dataset: Dataset) -> list[Sent]:
        sent: list[Sent] = []
        for store in dataset.stores:
            lines = lines_of(store, self._counter)
            user_id = self._evaluation.loaded[store.store_id].user_id
            session = f"{user_id}-asks"
            await self._api.post("/sessions", {"session_id": session, "user_id": user_id})
            for budget in BUDGETS:
                newest = newest_within(lines, budget)
                sent += await asyncio.gather(
                    *(
                        self._ask(store, one, session, budget, sum(lines.values()), newest)
                        for one in store.questions
                    )
                )
            print(f"{store.store_id}: {len(store.questions)} questions", file=sys.stderr)
        return sent

    async def _ask(
        self,
        store: Store,
        question: Question,
        session: str,
        budget: int,
        history: int,
        newest: set[str],
    ) -> Sent:
        body = {
            "messages": [{"role": "user", "content": question.text}],
            "max_memory_tokens": budget,
        }
        async with self._turns:
            answer = (await self._api.post(f"/sessions/{session}/context", body)).body
        units = self._evaluation.loaded[store.store_id].units
        inside = {unit for one in answer["used"] for unit in units.get(one["memory_id"], ())}
        return Sent(
            question.category,
            budget,
            answer["tokens"],
            history,
            len(question.gold),
            len(question.gold & inside),
            len(answer["used"]),
            len(question.gold & newest),
        )


def figures(sent: Sequence[Sent]) -> dict[str, float]:
    """Means over questions."""
    return {
        "questions": len(sent),
        "tokens": statistics.fmean(one.tokens for one in sent),
        "history": statistics.fmean(one.history for one in sent),
        "share": sum(one.tokens for one in sent) / sum(one.history for one in sent),
        "turns": statistics.fmean(one.shown for one in sent),
        "all_inside": statistics.fmean(one.inside == one.gold for one in sent),
        "any_inside": statistics.fmean(one.inside > 0 for one in sent),
        "evidence_inside": statistics.fmean(one.inside / one.gold for one in sent),
        "newest_all": statistics.fmean(one.newest == one.gold for one in sent),
        "newest_evidence": statistics.fmean(one.newest / one.gold for one in sent),
    }


async def measure(dataset: Dataset) -> dict[str, Any]:
    load, counter = os.getloadavg()[0], open_counter()
    plan = Plan(run_id="context", limit=10, search={}, concurrency=CONCURRENCY, keep=True)
    async with (
        open_cluster() as cluster,
        server("service", dsn=cluster.dsn) as served,
        open_api(f"http://127.0.0.1:{served.port}", cluster.key, connections=CONCURRENCY) as api,
    ):
        evaluation = Evaluation(api, dataset, plan, utc_now())
        async with evaluation.stored():
            sent = await Asking(api, evaluation, counter).ask_all(dataset)
    by_budget = {budget: [one for one in sent if one.budget == budget] for budget in BUDGETS}
    return {
        "counter": counter.name,
        "turns": dataset.unit_count,
        "conversations": len(dataset.stores),
        "budgets": {str(budget): figures(rows) for budget, rows in by_budget.items()},
        "categories": {
            category: {
                str(budget): figures([one for one in rows if one.category == category])
                for budget, rows in by_budget.items()
            }
            for category in dataset.categories
        },
        "date": utc_now().isoformat(timespec="seconds"),
        "load_before": load,
        "load_after": os.getloadavg()[0],
    }


HEAD: Final = """
# Tokens of a context, and what is inside

{date}. LoCoMo, {conversations} conversations of {turns:,} turns, one memory per turn, stored and \
asked over HTTP in a keyless service; the adversarial questions, which ask for what was never \
said, are left out. Tokens by `{counter}`, of the context with the question and all headers, and \
of the whole conversation with the words of its turns alone, without speakers and dates (the \
memories' lines have no speaker either, but each has its day). A question counts as inside when \
every turn that the data set names as its evidence is in the context. \"Newest\" are the last \
turns of as many tokens. Written by `python -m benchmarks.context_tokens`.

| memory budget | questions | tokens sent | of the whole history | turns inside | all evidence \
inside | some of it | evidence inside | newest: all | newest: evidence |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""


def report(result: Mapping[str, Any]) -> str:
    lines = [HEAD.format(**result).strip()]
    for budget, one in result["budgets"].items():
        lines.append(
            f"| {int(budget):,} | {one['questions']:,} | {one['tokens']:,.0f} | "
            f"{one['share']:.1%} of {one['history']:,.0f} | {one['turns']:.0f} | "
            f"**{one['all_inside']:.1%}** | {one['any_inside']:.1%} | "
            f"{one['evidence_inside']:.1%} | {one['newest_all']:.1%} | "
            f"{one['newest_evidence']:.1%} |"
        )
    head = " | ".join(f"{int(budget):,} tokens" for budget in result["budgets"])
    lines += [
        "", "## All evidence inside, by kind of question", "",
        f"| kind | questions | {head} |", f"|---|--:|{'--:|' * len(result['budgets'])}",
    ]  # fmt: skip
    for category, by_budget in result["categories"].items():
        shares = " | ".join(f"{one['all_inside']:.1%}" for one in by_budget.values())
        number = next(iter(by_budget.values()))["questions"]
        lines.append(f"| {category} | {number:,} | {shares} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path, required=True, help="locomo10.json")
    parser.add_argument("--quick", action="store_true", help="two conversations, sixty questions")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    whole = read_locomo(given.locomo)
    dataset = choose(
        whole,
        categories=[name for name in whole.categories if name not in whole.apart],
        stores=QUICK_STORES if given.quick else None,
        questions=QUICK_QUESTIONS if given.quick else None,
    )
    result = asyncio.run(measure(dataset))
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    given.out.with_suffix(".md").write_text(report(result), encoding="utf-8")
    print(report(result))


if __name__ == "__main__":
    main()
