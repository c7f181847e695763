"""What an evaluation found: figures per category and in total, as a table and as JSON."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from app.console import out, print_table
from app.evaluation.dataset import Dataset
from app.evaluation.metrics import (
    COUNTED_AS,
    NDCG_AT,
    SESSIONS_AT,
    Scores,
    estimated_tokens,
    interval,
    mean_scores,
    quantile,
    score,
)
from app.evaluation.run import AskedQuestion, Evaluation

TOTAL = "total"
_DIGITS = 4


def report_of(
    dataset: Dataset, evaluation: Evaluation, asked: Sequence[AskedQuestion], ks: Sequence[int]
) -> dict[str, Any]:
    """Everything that was found, ready for JSON; shares are 0 to 1.

    `total` is the mean over all questions but those of the data set's categories apart.
    """
    sessions = {
        store.store_id: {unit.unit_id: unit.session for unit in store.units if unit.session}
        for store in dataset.stores
    }
    scored = [
        score(
            answer.hits,
            answer.question.gold,
            relevant=answer.relevant,
            ks=ks,
            sessions=sessions[answer.store.store_id],
        )
        for answer in asked
    ]
    found = by_category(
        dataset,
        [answer.question.category for answer in asked],
        lambda held: _figures(
            [asked[number] for number in held], [scored[number] for number in held], ks
        ),
    )
    models = frozenset[str]().union(*(answer.models for answer in asked))
    return found | {
        "milliseconds": milliseconds_of(
            [answer.milliseconds for answer in asked if not answer.problem]
        ),
        "token_counter": COUNTED_AS,
        "loaded": loaded_of(evaluation, dataset),
        "asked": {
            "questions": len(asked),
            "problems": dict(Counter(answer.problem for answer in asked if answer.problem)),
            "failed": sum(answer.failed for answer in asked),
            "degraded": sum(answer.degraded for answer in asked),
            "without_embedder": sum(_lacks_embedder(answer, models) for answer in asked),
            "without_gold": dataset.without_gold,
            "unknown_gold": dataset.unknown_gold,
            "reference_time_refused": evaluation.unsent_times,
        },
        "embedding_models": sorted(models),
        "questions": [_line(answer, made) for answer, made in zip(asked, scored, strict=True)],
    }


def by_category(
    dataset: Dataset, categories: Sequence[str], figures: Callable[[Sequence[int]], dict[str, Any]]
) -> dict[str, Any]:
    """Figures in total, by category, and of the categories apart; None and {} where none is asked.

    Args:
        categories: of each question asked, in order.
        figures: those of the questions with these numbers, at least one.

    """
    groups: dict[str, list[int]] = {name: [] for name in sorted(set(categories))}
    for number, name in enumerate(categories):
        groups[name].append(number)
    apart = dataset.apart
    total = [number for name, held in groups.items() if name not in apart for number in held]
    return {
        "total": figures(total) if total else None,
        "categories": {name: figures(held) for name, held in groups.items() if name not in apart},
        "apart": {name: figures(held) for name, held in groups.items() if name in apart},
    }


def _figures(
    asked: Sequence[AskedQuestion], scored: Sequence[Scores], ks: Sequence[int]
) -> dict[str, Any]:
    mean = mean_scores(scored)
    tokens = {k: [sum(map(estimated_tokens, answer.texts[:k])) for answer in asked] for k in ks}
    return {
        "questions": len(asked),
        "recall": {str(k): round(value, _DIGITS) for k, value in mean.recall.items()},
        "recall_interval": {
            str(k): rounded_interval([scores.recall[k] for scores in scored]) for k in ks
        },
        "hit": {str(k): round(value, _DIGITS) for k, value in mean.hit.items()},
        f"ndcg@{NDCG_AT}": round(mean.ndcg, _DIGITS),
        "mrr": round(mean.mrr, _DIGITS),
        f"session_recall@{SESSIONS_AT}": _rounded(mean.session_recall),
        "tokens": {str(k): round(sum(each) / len(each), 1) for k, each in tokens.items()},
    }


def _lacks_embedder(asked: AskedQuestion, models: frozenset[str]) -> bool:
    """Whether it was an embedder that did not answer, and not the reranker alone.

    Args:
        models: all that embedded any question.

    """
    if not asked.degraded or asked.mode == "lexical":
        return False
    return asked.reranker is not None or not asked.models or asked.models < models


def rounded_interval(values: Sequence[float]) -> list[float]:
    """Low and high end of what the mean is with 95 %, as JSON."""
    return [round(value, _DIGITS) for value in interval(values)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def milliseconds_of(waited: Sequence[float]) -> dict[str, float] | None:
    """How long the client waited for an answer; refused ones are quick and do not count."""
    if not waited:
        return None
    return {f"p{share}": round(quantile(waited, share / 100), 2) for share in (50, 95)}


def loaded_of(evaluation: Evaluation, dataset: Dataset) -> dict[str, Any]:
    """What became of the units."""
    held = list(evaluation.loaded.values())
    events = sum((loaded.events for loaded in held), Counter[str]())
    return {
        "units": dataset.unit_count,
        "stored": events["ADD"],
        "same_as_another": events["NONE"],
        "refused": events["REJECT"] + events["SKIP"],
        "refusals": dict(sum((loaded.refusals for loaded in held), Counter[str]())),
        "ahead_of_now": sum(loaded.ahead for loaded in held),
        "waiting": sum(loaded.waiting for loaded in held),
        "unread_dates": dataset.unread_dates,
    }


def _line(asked: AskedQuestion, made: Scores) -> dict[str, Any]:
    """One question: at which rank each of its units was found, None when it was not."""
    ranks = {
        unit: next((rank for rank, hit in enumerate(asked.hits, 1) if unit in hit), None)
        for unit in sorted(asked.question.gold)
    }
    return {
        "store": asked.store.store_id,
        "category": asked.question.category,
        "question": asked.question.text,
        "ranks": ranks,
        f"ndcg@{NDCG_AT}": round(made.ndcg, _DIGITS),
        "milliseconds": round(asked.milliseconds, 2),
        "problem": asked.problem,
    }


def figures_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a report, without those of single questions and what says how it was made."""
    figures = {name: value for name, value in report.items() if name not in _ABOUT}
    found: dict[str, Any] = _without_rows(figures)
    return found


_ABOUT: Final = {"kemem", "date", "service", "processors", "data", "settings"}


def _without_rows(value: Any) -> Any:
    """A value without lists of objects."""
    if not isinstance(value, Mapping):
        return value
    return {
        str(name): _without_rows(held)
        for name, held in value.items()
        if not (isinstance(held, list) and any(isinstance(row, Mapping) for row in held))
    }


def print_report(title: str, report: Mapping[str, Any], ks: Sequence[int]) -> None:
    """The table for people, in percent, and what was odd."""
    sessions = f"session_recall@{SESSIONS_AT}"
    with_sessions = any(figures[sessions] is not None for _, figures in rows_of(report))
    depth = 10 if 10 in ks else ks[-1]
    columns = [
        "questions",
        *(f"recall@{k}" for k in ks),
        f"nDCG@{NDCG_AT}",
        "MRR",
        *([f"sessions@{SESSIONS_AT}"] if with_sessions else ()),
        f"tokens@{depth}",
    ]
    rows = [
        (
            name,
            figures["questions"],
            *(percent(figures["recall"][str(k)]) for k in ks),
            percent(figures[f"ndcg@{NDCG_AT}"]),
            percent(figures["mrr"]),
            *([percent(figures[sessions])] if with_sessions else ()),
            f"{figures['tokens'][str(depth)]:.0f}",
        )
        for name, figures in rows_of(report)
    ]
    print_table(title, ("category", *columns), rows, right=columns)
    for sentence in _sentences(report):
        out.print(sentence, markup=False, soft_wrap=True)


def rows_of(report: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The categories, then the total, then what is apart, each with its name in a table."""
    rows = list(report["categories"].items())
    if report["total"] is not None:
        rows.append((TOTAL, report["total"]))
    return [*rows, *((f"apart: {name}", figures) for name, figures in report["apart"].items())]


def percent(share: float | None) -> str:
    """Of a share; empty for none."""
    return "" if share is None else f"{share * 100:.1f}"


def loaded_sentences(loaded: Mapping[str, Any]) -> list[str]:
    """What became of the units; nothing about what is zero."""
    odd = (
        (loaded["ahead_of_now"], "units are dated in the future and were stored without a date."),
        (loaded["waiting"], "messages were not ready to be searched when the asking began."),
        (loaded["unread_dates"], "dates could not be read and were left out."),
    )
    same = (
        f" {loaded['same_as_another']} are word for word another one, which stands for both;"
        if loaded["same_as_another"]
        else ""
    )
    return [
        f"Stored {loaded['stored']} of {loaded['units']} units;{same} {loaded['refused']} refused.",
        *(f"  refused as {code}: {count}" for code, count in loaded["refusals"].items()),
        *(f"{count} {words}" for count, words in odd if count),
    ]


def _sentences(report: Mapping[str, Any]) -> list[str]:
    """What one should know besides the table; nothing about what is zero."""
    asked, waited = report["asked"], report["milliseconds"]
    sentences = loaded_sentences(report["loaded"])
    if waited:
        sentences.append(
            f"A search took {waited['p50']:.1f} ms (p50) and {waited['p95']:.1f} ms (p95), as the "
            "client sees it."
        )
    told = (
        (asked["unknown_gold"], "answers name a unit that is not there; they were dropped."),
        (asked["without_gold"], "questions have no answer to find and were not asked."),
        (asked["without_embedder"], "searches were answered without the embedder."),
        (
            asked["degraded"] - asked["without_embedder"],
            "searches were answered in the order they had without the reranker.",
        ),
        (asked["failed"], "searches failed; their questions count as missed."),
    )
    sentences += [f"{count} {words}" for count, words in told if count]
    sentences += [
        f"{count} questions were not answered ({code}); they count as missed."
        for code, count in asked["problems"].items()
    ]
    if asked["reference_time_refused"]:
        sentences.append("The dates of questions were not sent: this service takes none.")
    return sentences
